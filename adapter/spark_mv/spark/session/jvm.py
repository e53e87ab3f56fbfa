"""What the classes of the session's JVM have. For `spark._jvm.org.apache…` Py4J asks the JVM what each dot leads to, and the JVM looks through
all its jars for a class called `org`: half a millisecond a dot, where a call takes a tenth of one."""

from __future__ import annotations

from functools import lru_cache
from typing import Any


def jvm_class(spark: Any, name: str) -> Any:
    """A class by its full name, to make objects of. Raises AttributeError where the session has no JVM in this process; of a class that is not
    there, Py4J's error once it is called."""
    from py4j.java_gateway import JavaClass

    return JavaClass(name, spark._jvm._gateway_client)


def load_class(spark: Any, name: str) -> None:
    """Raises where the session has no JVM in this process, or its JVM no class of this name."""
    static(spark, "java.lang.Thread", "currentThread")().getContextClassLoader().loadClass(name)


def static(spark: Any, name: str, member: str) -> Any:
    """A static method of a class. Raises as `jvm_class` does, and Py4J's error where there is none."""
    return _static(spark._jvm._gateway_client, name, member)


PART = 4000
"""Characters of a text that come from the JVM at once. Py4J's answer of more than 8,192 bytes is sent in parts, of which the second may wait 40 ms
for the receipt of the first (Nagle's algorithm). Backslashes in it are doubled."""


def text_in_parts(writer: Any) -> str:
    """What a java.io.StringWriter holds, all of it ASCII."""
    buffer = writer.getBuffer()
    length = buffer.length()
    return "".join(buffer.substring(begin, min(begin + PART, length)) for begin in range(0, length, PART))


@lru_cache(maxsize=128)
def _static(client: Any, name: str, member: str) -> Any:
    from py4j.java_gateway import JavaClass

    return getattr(JavaClass(name, client), member)

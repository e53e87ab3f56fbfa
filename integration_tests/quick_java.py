"""How a JVM for tests starts: without the optimizing compiler, which takes half the time of what runs once. Alone that would leave
48 MB for compiled code, and a suite would compile the same again and again."""

QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m"

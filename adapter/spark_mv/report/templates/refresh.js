const made = document.currentScript && fetch("version").then((answer) => answer.text());
setInterval(async () => {
  try {
    const now = await (await fetch("version", { cache: "no-store" })).text();
    if (now !== (await made)) location.reload();
  } catch (error) { /* the server has ended; the page stays */ }
}, 3000);

const charts = JSON.parse(document.getElementById("charts").textContent);
const soft = "var(--soft)", line = "var(--line)";
const config = {
  background: "transparent", font: "system-ui, -apple-system, 'Segoe UI', 'Liberation Sans', sans-serif",
  view: { stroke: null },
  axis: { labelColor: soft, titleColor: soft, gridColor: line, domainColor: line, tickColor: line, titleFontWeight: 400, labelFontSize: 11, titleFontSize: 11 },
  axisX: { grid: false }, axisY: { domain: false, ticks: false },
  legend: { labelColor: soft, labelFontSize: 11, labelLimit: 160, offset: 4 },
};
const drawn = new Set();
async function draw(id) {
  if (drawn.has(id)) return;
  drawn.add(id);
  const place = document.getElementById(id);
  try {
    await window.sparkMv.vegaEmbed(place, charts[id], { ast: true, renderer: "svg", actions: false, config, tooltip: { disableDefaultStyle: true } });
    const svg = place.querySelector("svg");
    if (svg) svg.setAttribute("aria-hidden", "true");
  } catch (error) {
    place.textContent = "This chart could not be drawn; the table of runs has its numbers.";
  }
}
const ids = Object.keys(charts);
const seen = new IntersectionObserver((entries) => {
  for (const entry of entries) if (entry.isIntersecting) { seen.unobserve(entry.target); draw(entry.target.id); }
}, { rootMargin: "600px" });
for (const id of ids) ids.length > 40 ? seen.observe(document.getElementById(id)) : draw(id);
addEventListener("beforeprint", () => ids.forEach(draw));

// The first mover's chances over the game, and its lead where it is known.

import { byId, percent, signed, svg } from "./svg.js";

const WIDTH = 400, HEIGHT = 110, PADDING = 6;

// `chances` maps plies to { rate, lead? } of the first mover; `mistakes` is a set of plies.
export function drawGraph(game, chances, mistakes, onPick) {
  const figure = byId("graph"), picture = figure.querySelector("svg");
  const known = [...chances.entries()].filter(([ply]) => ply <= game.line.length).sort((a, b) => a[0] - b[0]);
  figure.hidden = known.length < 2;
  if (figure.hidden) return;
  const length = Math.max(1, game.line.length), x = (ply) => PADDING + ((WIDTH - 2 * PADDING) * ply) / length, y = (rate) => HEIGHT - HEIGHT * rate;
  picture.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
  const points = known.map(([ply, { rate }]) => `${x(ply).toFixed(1)},${y(rate).toFixed(1)}`);
  const first = x(known[0][0]).toFixed(1), last = x(known.at(-1)[0]).toFixed(1);
  const parts = [
    svg("rect", { class: "back", width: WIDTH, height: HEIGHT }),
    svg("polygon", { class: "area", points: `${first},${HEIGHT} ${points.join(" ")} ${last},${HEIGHT}` }),
    svg("path", { class: "middle", d: `M0 ${HEIGHT / 2}H${WIDTH}` }),
    svg("polyline", { class: "rate", points: points.join(" ") }),
  ];
  const leads = known.filter(([, { lead }]) => lead !== undefined);
  if (leads.length > 1) {
    const most = Math.max(5, ...leads.map(([, { lead }]) => Math.abs(lead)));
    parts.push(svg("polyline", { class: "lead", points: leads.map(([ply, { lead }]) => `${x(ply).toFixed(1)},${(HEIGHT / 2 - (0.46 * HEIGHT * lead) / most).toFixed(1)}`).join(" ") }));
  }
  for (const ply of mistakes) {
    const at = chances.get(ply);
    if (at) parts.push(svg("path", { class: "mistake", d: `M${x(ply)} ${y(at.rate)}v.01` }));
  }
  parts.push(svg("path", { class: "cursor", d: `M${x(game.ply)} 0V${HEIGHT}` }));
  picture.replaceChildren(...parts);
  picture.onclick = (event) => {
    const box = picture.getBoundingClientRect();
    const place = ((event.clientX - box.left) / box.width) * WIDTH;
    onPick(Math.max(0, Math.min(game.line.length, Math.round((length * (place - PADDING)) / (WIDTH - 2 * PADDING)))));
  };
  const now = chances.get(game.ply);
  const lead = now?.lead === undefined ? "" : `, lead ${signed(now.lead)}`;
  figure.querySelector(".name").textContent = `${game.sides[0]}’s chances`;
  figure.querySelector(".soft").textContent = now ? `${percent(now.rate)}${lead} after move ${game.ply}` : "";
  picture.setAttribute("aria-label", `${game.sides[0]}'s chances over ${game.line.length} moves${now ? `: ${percent(now.rate)} after move ${game.ply}` : ""}`);
}

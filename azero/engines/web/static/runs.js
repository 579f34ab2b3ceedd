// A run as it learns: its numbers, curves and newest games, refreshed while they are shown.

import { get, post } from "./api.js";
import { byId, html } from "./svg.js";

const EVERY_MS = 10000;
let timer = null;
let watches = 0; // counts the calls of watchRun: answers to earlier ones are dropped

// Shows the run of a network until it is called again; null shows none. `open(game)` shows a game of it.
export function watchRun(network, open) {
  clearTimeout(timer);
  watches += 1;
  if (network === null) return;
  const watch = watches;
  const look = async () => {
    const found = await get(`/api/runs/${network}`).catch((error) => error);
    if (watch !== watches) return;
    if (found instanceof Error) byId("run-status").textContent = found.message;
    else show(found, network, open);
    timer = setTimeout(look, EVERY_MS);
  };
  look();
}

function show(run, network, open) {
  byId("run-title").textContent = run.title;
  byId("run-status").textContent = run.status;
  byId("run-numbers").replaceChildren(...run.numbers.map(([name, value]) => html("div", { class: "tile" }, html("b", {}, value), html("span", {}, name))));
  const charts = byId("run-charts"), drawn = run.charts.join("");
  if (charts.dataset.drawn !== drawn) {
    charts.innerHTML = drawn;
    charts.dataset.drawn = drawn;
  }
  byId("run-games-title").hidden = run.games.length === 0;
  byId("run-games").replaceChildren(...run.games.map((game) => html("li", {}, html("button", { type: "button", onclick: async () => {
    try {
      open(await post(`/api/runs/${network}/games`, { iteration: game.iteration, number: game.number }));
    } catch (error) {
      byId("run-status").textContent = error.message;
    }
  } }, html("b", {}, `Iteration ${game.iteration}`), html("span", { class: "soft" }, `${game.moves} moves${game.ending ? `, ${game.ending}` : ""}`)))));
}

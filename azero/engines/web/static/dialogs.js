// The dialogs: a new game, and which piece a pawn becomes.

import { drawPiece } from "./pieces.js";
import { byId, html, svg } from "./svg.js";

const MOST_HANDICAP = { even: 4, odd: 9 };
const USUAL_AMOUNT = { visits: 200, seconds: 5 };

// Resolves to what kind of game is wanted, or to null.
export function askForGame(state) {
  const dialog = byId("new-dialog"), form = dialog.querySelector("form"), fields = form.elements;
  const asked = state.asked ?? { ...state.setup, fields: { network: state.game?.network } };
  fields.network.replaceChildren(...state.server.networks.map((network) => html("option", { value: network.key }, `${network.title} (${label(network)})`)));
  fields.network.selectedIndex = Math.max(0, state.server.networks.findIndex(({ key }) => key === asked.fields.network));
  fields.human.value = asked.human;
  fields.unit.value = asked.unit;
  fields.amount.value = asked.amount;
  const chosen = () => state.server.networks.find(({ key }) => key === fields.network.value);
  const refresh = () => fit(form, chosen());
  fields.network.onchange = refresh;
  fields.columns.onchange = () => { fields.rows.value = fields.columns.value; fitHandicap(fields); };
  fields.rows.onchange = () => fitHandicap(fields);
  form.querySelectorAll("[name=unit]").forEach((input) => {
    input.onchange = () => { fields.amount.value = USUAL_AMOUNT[fields.unit.value]; fitAmount(fields, state.server.limits); };
  });
  refresh();
  if (fields.network.value === asked.fields.network) restore(fields, asked.fields);
  fitAmount(fields, state.server.limits);
  dialog.returnValue = "cancel";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.onclose = () => resolve(dialog.returnValue === "start" ? read(fields, chosen()) : null);
  });
}

function label({ game, board }) {
  const name = game === "tictactoe" ? "Tic-tac-toe" : game[0].toUpperCase() + game.slice(1).replace("_", " ");
  return game === "go" ? `${name} ${board[1]}×${board[0]}` : name;
}

function fit(form, network) {
  const fields = form.elements, isGo = network.game === "go";
  const show = (selector, isShown) => form.querySelectorAll(selector).forEach((element) => { element.hidden = !isShown; });
  show(".only-go-form", isGo);
  show(".field-board", network.sides.length > 0);
  show(".field-iteration", network.iterations.length > 1);
  show(".field-start", ["chess", "minichess", "shogi", "animal_shogi"].includes(network.game));
  form.querySelector(".start-name").textContent = network.game.endsWith("shogi") ? "SFEN" : "FEN";
  for (const [select, side] of [[fields.rows, network.board[0]], [fields.columns, network.board[1]]]) {
    const sides = network.sides.length ? network.sides : [side];
    select.replaceChildren(...sides.map((points) => html("option", { value: points }, points)));
    select.value = side;
  }
  const newestFirst = [...network.iterations].reverse();
  fields.iteration.replaceChildren(...newestFirst.map((iteration, index) => html("option", { value: iteration }, `${iteration}${index ? "" : " (newest)"}`)));
  fields.iteration.selectedIndex = Math.max(0, newestFirst.indexOf(network.iteration));
  fields.komi.value = network.komi ?? "";
  fields.start.value = ""; // a position of another game
  const names = isGo || network.game === "shogi" ? ["Black", "White"] : network.game.endsWith("chess") ? ["White", "Black"] : network.game === "tictactoe" ? ["X (first)", "O (second)"] : ["First", "Second"];
  form.querySelector(".first-side").textContent = names[0];
  form.querySelector(".second-side").textContent = names[1];
  fitHandicap(fields);
}

// Fills in what a refused game was asked with.
function restore(fields, asked) {
  for (const name of ["columns", "rows", "komi", "iteration", "start"]) {
    if (name in asked) fields[name].value = asked[name];
  }
  fitHandicap(fields);
  fields.handicap.value = asked.handicap ?? 0;
}

function fitHandicap(fields) {
  const size = Number(fields.rows.value), isSquare = fields.rows.value === fields.columns.value;
  const most = size < 7 || !isSquare ? 0 : size % 2 && size >= 9 ? MOST_HANDICAP.odd : MOST_HANDICAP.even;
  const counts = Array.from({ length: Math.max(0, most - 1) }, (_, index) => index + 2);
  fields.handicap.replaceChildren(html("option", { value: 0 }, "none"), ...counts.map((count) => html("option", { value: count }, count)));
}

function fitAmount(fields, limits) {
  const isVisits = fields.unit.value === "visits";
  fields.amount.max = isVisits ? limits.visits : limits.seconds;
  fields.amount.step = isVisits ? 1 : 0.5;
  fields.amount.min = isVisits ? 1 : 0.5;
  if (Number(fields.amount.value) > Number(fields.amount.max)) fields.amount.value = fields.amount.max;
}

function read(fields, network) {
  const wanted = { network: network.key };
  if (network.game === "go") {
    if (network.sides.length) Object.assign(wanted, { columns: Number(fields.columns.value), rows: Number(fields.rows.value) });
    if (fields.komi.value !== "") wanted.komi = Number(fields.komi.value);
    if (Number(fields.handicap.value)) wanted.handicap = Number(fields.handicap.value);
  }
  if (network.iterations.length > 1) wanted.iteration = Number(fields.iteration.value);
  if (fields.start.value.trim()) wanted.start = fields.start.value.trim();
  return { fields: wanted, human: fields.human.value, unit: fields.unit.value, amount: Number(fields.amount.value) || 1 };
}

// Resolves to one of several moves between the same squares, or to null.
export function askForPromotion(moves, game) {
  const dialog = byId("promotion-dialog"), menu = dialog.querySelector("menu");
  const isShogi = game.game === "shogi";
  dialog.querySelector("h2").textContent = isShogi ? "Promote?" : "Promote to";
  menu.replaceChildren(...moves.map((move) => {
    const piece = game.pieces[move[1]], isFirst = game.to_play === 0;
    const letter = isShogi ? (move[4] ? `+${piece}` : piece) : isFirst ? move[4].toUpperCase() : move[4];
    const picture = svg("svg", { viewBox: "-23 -23 46 46" }, drawPiece(game.game, letter, game.glyphs, { isFlipped: !isFirst }));
    return html("button", { type: "submit", value: move[0], "aria-label": isShogi ? (move[4] ? "promote" : "do not promote") : move[4] }, picture);
  }));
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.onclose = () => resolve(moves.find((move) => move[0] === dialog.returnValue) ?? null);
  });
}

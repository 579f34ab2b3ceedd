// What stands beside the board: players, chances, lines, moves, mistakes.

import { drawPiece } from "./pieces.js";
import { byId, html, percent, signed, svg } from "./svg.js";

export function drawPlayers(state, board, isHumanTurn) {
  const { game, setup } = state;
  const bottom = board.isFlipped || (setup.human === "1" && !game.pieces) ? 1 : 0;
  for (const [id, side] of [["top-player", 1 - bottom], ["bottom-player", bottom]]) {
    const row = byId(id);
    const isNetwork = setup.human === "none" || (["0", "1"].includes(setup.human) && Number(setup.human) !== side);
    const name = game.players[side] || (isNetwork ? "azero" : setup.human === "both" || setup.human === "analysis" ? "" : "You");
    row.querySelector("b").textContent = game.sides[side];
    row.querySelector(".soft").textContent = [name, side === 1 && game.komi ? `komi ${game.komi}` : ""].filter(Boolean).join(", ");
    row.querySelector(".stone").className = `stone side-${side} ${game.game}`;
    row.classList.toggle("to-play", !game.over && game.to_play === side);
    row.classList.toggle("winner", game.over && game.winner === side);
    drawHand(row.querySelector(".hand"), game, side, board, isHumanTurn);
  }
}

function drawHand(place, game, side, board, isHumanTurn) {
  const hand = Object.entries(game.hands?.[side] ?? {});
  place.replaceChildren(...hand.map(([letter, count]) => {
    const piece = side === 0 ? letter : letter.toLowerCase();
    const picture = svg("svg", { viewBox: "-23 -23 46 46", "aria-hidden": "true" }, drawPiece(game.game, piece, game.glyphs, { isFlipped: side === 1 }));
    const button = html("button", { type: "button", "aria-label": `${count} ${letter} in hand`, onclick: () => { if (board.canPlay() && game.to_play === side) board.select(letter); } }, picture, count > 1 ? String(count) : "");
    button.disabled = !(isHumanTurn && game.to_play === side && !game.over);
    button.dataset.letter = letter;
    return button;
  }));
}

// Shows which game of its file this is; another one can be chosen while the page has the file.
export function drawPlace({ place: [number, count] }, hasFile) {
  const row = byId("place"), select = row.querySelector("select");
  row.hidden = count === 1;
  if (select.length !== count) select.replaceChildren(...Array.from({ length: count }, (_, index) => html("option", { value: index + 1 }, index + 1)));
  select.value = number;
  select.disabled = !hasFile;
  row.querySelector("span").textContent = count;
}

export function drawChances(game, chances) {
  const bar = byId("chances");
  bar.hidden = !chances;
  if (!chances) return;
  bar.querySelector("i").style.width = percent(chances.rate);
  const lead = chances.lead === undefined ? "" : ` ${signed(Math.abs(chances.lead))}`;
  const isAhead = (chances.lead ?? 0) >= 0;
  bar.querySelector(".left").textContent = `${percent(chances.rate)}${isAhead ? lead : ""}`;
  bar.querySelector(".right").textContent = `${isAhead ? "" : lead} ${percent(1 - chances.rate)}`;
  bar.setAttribute("aria-label", `${game.sides[0]} ${percent(chances.rate)}, ${game.sides[1]} ${percent(1 - chances.rate)}`);
}

export function drawLines(game, analysis, board, { onLook, onPlay }) {
  const body = byId("lines").tBodies[0];
  byId("lines").hidden = !analysis?.moves.length;
  byId("no-lines").hidden = Boolean(analysis);
  byId("facts").textContent = analysis ? `${analysis.visits.toLocaleString("en")} visits in ${analysis.seconds} s; the network alone gives ${percent(analysis.rawWinrate)} to ${game.sides[analysis.toPlay]}` : "";
  // Rows stay while their texts change: a row that is replaced under the mouse loses its click.
  const moves = analysis?.moves ?? [];
  while (body.rows.length > moves.length) body.deleteRow(-1);
  while (body.rows.length < moves.length) body.append(makeRow(body.rows.length, onLook, onPlay));
  moves.forEach((move, index) => {
    const [name, rate, lead, visits, prior, line] = body.rows[index].cells;
    name.firstChild.textContent = move.pv[0];
    rate.textContent = percent(move.winrate);
    lead.textContent = move.lead === undefined ? "" : signed(move.lead);
    visits.textContent = move.visits.toLocaleString("en");
    prior.textContent = percent(move.prior);
    line.textContent = move.pv.slice(1).join(" ");
  });
}

function makeRow(index, onLook, onPlay) {
  const button = html("button", { type: "button", class: "move", title: "Play this move" });
  let pressed = "";
  button.addEventListener("pointerdown", () => { pressed = button.textContent; });
  button.addEventListener("keydown", () => { pressed = button.textContent; });
  button.addEventListener("click", () => { if (pressed === button.textContent) onPlay(pressed); });
  const cells = ["num", "num only-go", "num", "num", "line"].map((kind) => html("td", { class: kind }));
  const row = html("tr", {}, html("td", {}, button), ...cells);
  row.addEventListener("pointerenter", (event) => { if (event.pointerType === "mouse") onLook(index); });
  row.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") onLook(null); });
  row.addEventListener("click", (event) => { if (!event.target.closest("button")) onLook(index); });
  return row;
}

export function drawMoveList(game, onPick) {
  const list = byId("moves"), rows = [];
  let row = null;
  game.line.forEach(([colour, , label], index) => {
    if (row === null || colour === 0) {
      row = html("li");
      if (colour === 1) row.append(html("span", { class: "gap" }, "…"));
      rows.push(row);
    }
    const button = html("button", { type: "button", onclick: () => onPick(index + 1) }, label);
    if (index + 1 === game.ply) button.setAttribute("aria-current", "true");
    row.append(button);
    if (colour === 1) row = null;
  });
  list.replaceChildren(...rows);
  const current = list.querySelector("[aria-current]");
  if (current && !byId("panel-moves").hidden) list.scrollTop = Math.max(0, current.offsetTop - list.clientHeight / 2);
}

export function listMistakes(state, onPick) {
  const { game, analyses, mistakes, isReviewed } = state;
  byId("review-hint").hidden = isReviewed || mistakes.length > 0;
  byId("no-mistakes").hidden = !isReviewed || mistakes.length > 0;
  byId("mistakes").replaceChildren(...mistakes.map((mistake) => {
    const best = analyses.get(mistake.ply - 1)?.moves[0];
    const better = best ? `better ${best.pv[0]}` : "";
    return html("li", {}, html("button", { type: "button", onclick: () => onPick(mistake.ply) },
      html("span", { class: `dot side-${mistake.colour}` }),
      html("b", {}, `${mistake.ply}. ${mistake.played}`),
      html("span", { class: "loss" }, `−${percent(mistake.loss)}`),
      html("span", { class: "soft" }, `${game.sides[mistake.colour]}, ${better}`)));
  }));
}

// What is drawn over the board of an analysis: best moves, policy, ownership, a line of play.

import { drawPiece } from "./pieces.js";
import { percent, svg } from "./svg.js";

const SHOWN = 8; // best moves drawn
const FEWEST_SHARE = 0.02; // of the most visited move's visits

export function clearOverlays(board) {
  for (const name of ["heat", "owners", "hints"]) board.layers[name].replaceChildren();
}

export function drawOverlay(board, kind, analysis) {
  clearOverlays(board);
  if (!analysis) return;
  if (kind === "moves") drawMoves(board, analysis);
  else if (kind === "policy") drawPolicy(board, analysis.policy);
  else if (kind === "owners" && analysis.ownership) drawOwners(board, analysis.ownership);
}

// Blue is the best move, then from green over yellow to red by the chances it gives away.
function colourOf(loss, index) {
  if (index === 0) return "var(--best)";
  return `hsl(${Math.max(0, 140 - 1100 * loss)} 55% 45%)`;
}

function drawMoves(board, analysis) {
  const { moves } = analysis;
  if (!moves.length) return;
  const most = Math.max(...moves.map((move) => move.visits));
  const shown = moves.slice(0, SHOWN).filter((move, index) => index === 0 || move.visits >= FEWEST_SHARE * most);
  shown.map((move, index) => [move, index]).reverse().forEach(([move, index]) => {
    const colour = colourOf(moves[0].winrate - move.winrate, index);
    const strength = 0.45 + 0.55 * Math.sqrt(move.visits / most);
    if (board.hasPieces) drawArrow(board, move.pv[0], board.game.to_play, colour, strength, index === 0 ? percent(move.winrate) : "");
    else drawDisc(board, move, colour, strength);
  });
}

function drawDisc(board, move, colour, strength) {
  if (move.pv[0] === "pass") return;
  const [x, y] = board.centre(board.squareOf(move.pv[0]));
  const { cell } = board.game;
  const disc = svg("g", { class: "disc" });
  disc.append(
    svg("circle", { cx: x, cy: y, r: cell * 0.45, fill: colour, "fill-opacity": strength }),
    svg("text", { x, y: y - cell * 0.06, class: "rate" }, percent(move.winrate).replace("%", "")),
    svg("text", { x, y: y + cell * 0.28, class: "count" }, shortCount(move.visits)),
  );
  board.layers.hints.append(disc);
}

export function shortCount(number) {
  if (number < 1000) return String(number);
  return number < 10000 ? `${(number / 1000).toFixed(1)}k` : `${Math.round(number / 1000)}k`;
}

// Returns the squares of a move from its name: e2e4, 7g7f+, P*5e, C@b2.
export function squaresOf(board, name) {
  const isDrop = name[1] === "*" || name[1] === "@";
  return isDrop ? [null, board.squareOf(name.slice(2, 4)), name[0]] : [board.squareOf(name.slice(0, 2)), board.squareOf(name.slice(2, 4)), ""];
}

function drawArrow(board, name, mover, colour, strength, label, thickness = 0.15) {
  const { cell } = board.game;
  const [start, end, drop] = squaresOf(board, name);
  const [x, y] = board.centre(end);
  const group = svg("g", { class: "arrow", opacity: strength });
  if (start === null) {
    const place = svg("g", { transform: `translate(${x} ${y}) scale(${(cell / 45) * 0.8})`, opacity: 0.75 });
    place.append(drawPiece(board.game.game, mover === 0 ? drop : drop.toLowerCase(), board.game.glyphs, { isFlipped: board.isFlipped }));
    group.append(place, svg("circle", { cx: x, cy: y, r: cell * 0.44, fill: "none", stroke: colour, "stroke-width": cell * 0.07 }));
  } else {
    const [fromX, fromY] = board.centre(start);
    const length = Math.hypot(x - fromX, y - fromY), head = cell * 0.34;
    const [dx, dy] = [(x - fromX) / length, (y - fromY) / length];
    const [neckX, neckY] = [x - dx * head, y - dy * head];
    const [tipX, tipY] = [x - dx * cell * 0.04, y - dy * cell * 0.04];
    const wide = cell * 0.17;
    group.append(
      svg("path", { d: `M${fromX + dx * cell * 0.2} ${fromY + dy * cell * 0.2}L${neckX} ${neckY}`, stroke: colour, "stroke-width": cell * thickness, "stroke-linecap": "round", fill: "none" }),
      svg("path", { d: `M${tipX} ${tipY}L${neckX - dy * wide} ${neckY + dx * wide}L${neckX + dy * wide} ${neckY - dx * wide}z`, fill: colour, stroke: colour, "stroke-width": 0.6, "stroke-linejoin": "round" }),
    );
    if (label) {
      const [middleX, middleY] = [(fromX + neckX) / 2, (fromY + neckY) / 2];
      group.append(svg("rect", { class: "plate", x: middleX - cell * 0.37, y: middleY - cell * 0.17, width: cell * 0.74, height: cell * 0.34, rx: 3, fill: colour }), svg("text", { x: middleX, y: middleY, class: "rate", dy: ".35em" }, label));
    }
  }
  board.layers.hints.append(group);
}

function drawPolicy(board, policy) {
  const { cell } = board.game;
  const shares = new Map();
  if (board.hasPieces) {
    for (const [name, share] of policy) {
      const [, end] = squaresOf(board, name);
      shares.set(end, (shares.get(end) ?? 0) + share);
    }
    policy.slice(0, 5).filter(([, share]) => share > 0.03).reverse().forEach(([name, share]) => drawArrow(board, name, board.game.to_play, "var(--policy)", 0.25 + 0.6 * share, percent(share), 0.1));
  } else {
    policy.slice(0, board.rows * board.columns).forEach((share, square) => shares.set(square, share));
  }
  const most = Math.max(...shares.values());
  for (const [square, share] of shares) {
    if (share < 0.004) continue;
    const [x, y] = board.centre(square);
    board.layers.heat.append(svg("rect", { x: x - cell / 2, y: y - cell / 2, width: cell, height: cell, opacity: 0.12 + 0.78 * Math.sqrt(share / most) }));
    if (!board.hasPieces && share >= 0.01) board.layers.hints.append(svg("text", { class: "share", x, y, dy: ".35em" }, Math.round(100 * share)));
  }
}

function drawOwners(board, ownership) {
  const { cell } = board.game;
  ownership.forEach((owner, square) => {
    if (Math.abs(owner) < 0.05) return;
    const [x, y] = board.centre(square);
    const side = cell * 0.5 * Math.sqrt(Math.abs(owner));
    board.layers.hints.append(svg("rect", { class: `owner ${owner > 0 ? "black" : "white"}`, x: x - side / 2, y: y - side / 2, width: side, height: side }));
  });
}

// Shows a line of play: numbered stones in Go, arrows elsewhere.
export function drawLine(board, line, toPlay) {
  clearOverlays(board);
  const { cell } = board.game;
  if (board.hasPieces) {
    line.slice(0, 4).forEach((name, step) => drawArrow(board, name, (toPlay + step) % 2, step % 2 ? "var(--reply)" : "var(--best)", 0.95 - 0.15 * step, String(step + 1)));
    return;
  }
  const taken = new Set();
  line.forEach((name, step) => {
    if (name === "pass") return;
    const square = board.squareOf(name);
    if (taken.has(square)) return;
    taken.add(square);
    const [x, y] = board.centre(square);
    const side = (toPlay + step) % 2;
    const stone = svg("g", { class: "line-stone" });
    stone.append(board.mark("XO"[side], x, y, false), svg("text", { x, y, dy: ".35em", class: side ? "on-white" : "on-black" }, step + 1));
    if (!board.isGo) stone.lastChild.setAttribute("class", "count");
    board.layers.hints.append(stone);
  });
}

// The pieces of chess, shogi and animal shogi, drawn around (0, 0) in a square of 45 units.

import { svg } from "./svg.js";

const BASE = "M11 36.5h23v3.5h-23z";
const CHESS = {
  P: ["M22.5 9a5.3 5.3 0 0 0-3.4 9.4c-2 1-3.3 2.7-3.3 4.9 0 1.6.7 3 1.8 4.1-3.1 1.8-5.1 5-5.4 9.1h20.6c-.3-4.1-2.3-7.3-5.4-9.1a5.6 5.6 0 0 0 1.8-4.1c0-2.2-1.3-3.9-3.3-4.9A5.3 5.3 0 0 0 22.5 9z", BASE],
  R: ["M11.5 9h5v3.5h3.6V9h4.8v3.5h3.6V9h5v8l-3.4 3v10.5l2.9 6h-21l2.9-6V20l-3.4-3z", BASE],
  B: ["M22.5 10.8c-5 3.9-8.2 8.6-8.2 13 0 3.2 1.8 5.8 4.4 7.2L16 36.5h13L26.3 31c2.6-1.4 4.4-4 4.4-7.2 0-4.4-3.2-9.1-8.2-13z", "M22.5 5.4a2.7 2.7 0 1 0 .01 0z", BASE],
  N: ["M13.3 36.5c.2-6.7 3.7-9.7 7-13-2.6.3-4.6 2.2-6.5 3.7-1.5 1.2-3.7 1.1-4.7-.7-.7-1.2-.5-2.4 0-3.6 1.5-3.3 2.8-6.4 4.8-9.2L14.2 7.5l4.5 3.2C27.7 9.5 34 17 34 26v10.5z", BASE],
  Q: ["M8.5 14.5 13.5 27l1-14.5 5 13 3-15 3 15 5-13 1 14.5 5-12.5-3.5 16.5.5 5.5h-22l.5-5.5z", "M8.5 10.7a2.2 2.2 0 1 0 .01 0zM14.5 8.7a2.2 2.2 0 1 0 .01 0zM22.5 6.7a2.2 2.2 0 1 0 .01 0zM30.5 8.7a2.2 2.2 0 1 0 .01 0zM36.5 10.7a2.2 2.2 0 1 0 .01 0z", BASE],
  K: ["M21 4.5h3v3h3v3h-3v4.3h-3v-4.3h-3v-3h3z", "M22.5 14.5c-2.7 0-4 2-3.3 4.2-3.8-3.2-11.7-1.9-11.2 5 .3 4 3.5 6.3 4.5 8.3v4.5h20V32c1-2 4.2-4.3 4.5-8.3.5-6.9-7.4-8.2-11.2-5 .7-2.2-.6-4.2-3.3-4.2z", BASE],
};
const DETAILS = { // lines in the colour of the outline
  B: "M22.5 17v8M19 20.5h7", N: "M17.6 15.6v.01", K: "M22.5 21v11", Q: "M13.5 31.5h18", R: "M15.5 20.5h14M15.5 30.5h14",
};
const LETTERS = { // where no font has the signs of shogi
  P: "P", L: "L", N: "N", S: "S", B: "B", R: "R", G: "G", K: "K", "+P": "+P", "+L": "+L", "+N": "+N", "+S": "+S", "+B": "+B", "+R": "+R",
};
const NAMES = {
  chess: { K: "king", Q: "queen", R: "rook", B: "bishop", N: "knight", P: "pawn" },
  animal_shogi: { L: "lion", E: "elephant", G: "giraffe", C: "chick", H: "hen" },
  shogi: { P: "pawn", L: "lance", N: "knight", S: "silver", B: "bishop", R: "rook", G: "gold", K: "king", "+P": "promoted pawn", "+L": "promoted lance", "+N": "promoted knight", "+S": "promoted silver", "+B": "horse", "+R": "dragon" },
};
NAMES.minichess = NAMES.chess;
const STEPS = { // of animal shogi: (right, forward)
  L: [[-1, 1], [0, 1], [1, 1], [-1, 0], [1, 0], [-1, -1], [0, -1], [1, -1]], G: [[0, 1], [-1, 0], [1, 0], [0, -1]],
  E: [[-1, 1], [1, 1], [-1, -1], [1, -1]], C: [[0, 1]], H: [[-1, 1], [0, 1], [1, 1], [-1, 0], [1, 0], [0, -1]],
};

let hasSigns = null; // a font for the signs of shogi

function canDrawSigns() {
  if (hasSigns !== null) return hasSigns;
  const context = Object.assign(document.createElement("canvas"), { width: 24, height: 24 }).getContext("2d", { willReadFrequently: true });
  const pixels = (sign) => {
    context.clearRect(0, 0, 24, 24);
    context.font = "20px sans-serif";
    context.fillText(sign, 0, 20);
    return context.getImageData(0, 0, 24, 24).data.join();
  };
  hasSigns = pixels("歩") !== pixels("玉");
  return hasSigns;
}

export function pieceName(game, piece) {
  return NAMES[game]?.[piece.toUpperCase()] ?? piece;
}

export const isFirst = (piece) => piece.at(-1) === piece.at(-1).toUpperCase();

// Returns a group that shows a piece; the second mover's pieces of shogi stand upside down.
export function drawPiece(game, piece, glyphs, { isFlipped = false } = {}) {
  const kind = piece.toUpperCase(), first = isFirst(piece);
  const turned = game !== "chess" && game !== "minichess" && first === isFlipped;
  const group = svg("g", { class: `piece ${first ? "first" : "second"} ${game}` });
  const inner = svg("g", turned ? { transform: "rotate(180)" } : {});
  group.append(inner);
  if (game === "shogi") drawShogi(inner, kind, glyphs);
  else if (game === "animal_shogi") drawAnimal(inner, kind, first);
  else drawChess(inner, kind);
  return group;
}

function drawChess(group, kind) {
  const shifted = svg("g", { transform: "translate(-22.5 -23)" });
  for (const path of CHESS[kind]) shifted.append(svg("path", { d: path, class: "body" }));
  if (DETAILS[kind]) shifted.append(svg("path", { d: DETAILS[kind], class: "detail" }));
  group.append(shifted);
}

function drawShogi(group, kind, glyphs) {
  group.append(svg("path", { class: "tile", d: "M0-20 13-14 17 19H-17L-13-14z" }));
  const sign = canDrawSigns() ? glyphs[kind] : LETTERS[kind];
  const text = svg("text", { y: 3, dy: ".35em", class: kind.startsWith("+") ? "promoted" : "" }, sign);
  if (!canDrawSigns()) text.classList.add("letters");
  group.append(text);
}

const FACES = {
  C: ["#f6cf45", "M-4 3 0 8 4 3z"], H: ["#fbf3e6", "M-4 3 0 8 4 3z"], L: ["#f3b25a", "M-3 4H3L0 7z"],
  G: ["#f1cd6b", "M-3.5 8.5a4 2.5 0 0 0 7 0z"], E: ["#a9b4c0", "M-2.5 2C-3 9-2 13 3 13"],
};

function drawAnimal(group, kind, first) {
  group.append(svg("rect", { class: `tile ${first ? "ours" : "theirs"}`, x: -18, y: -19, width: 36, height: 38, rx: 7 }));
  const [colour, mouth] = FACES[kind];
  const face = svg("g", { class: "face" });
  const circle = (cx, cy, r, fill) => svg("circle", { cx, cy, r, fill });
  if (kind === "L") for (let i = 0; i < 10; i += 1) face.append(circle(10 * Math.cos((i * Math.PI) / 5), 10 * Math.sin((i * Math.PI) / 5), 4.5, "#b8621b"));
  if (kind === "E") face.append(circle(-10, -1, 6, "#8d99a6"), circle(10, -1, 6, "#8d99a6"));
  if (kind === "G") face.append(svg("path", { d: "M-4-9V-14M4-9V-14", stroke: "#8a5a1e", "stroke-width": 2.5, "stroke-linecap": "round" }), circle(-9, -6, 3, colour), circle(9, -6, 3, colour));
  if (kind === "H") face.append(circle(-4, -10, 3.5, "#d8453a"), circle(0, -12, 3.5, "#d8453a"), circle(4, -10, 3.5, "#d8453a"));
  face.append(kind === "G" ? svg("ellipse", { cx: 0, cy: 1, rx: 8, ry: 10.5, fill: colour }) : circle(0, 0, 10, colour));
  if (kind === "G") face.append(circle(-5, -5, 1.8, "#b8772b"), circle(4, 3, 1.8, "#b8772b"), circle(-4.5, 4, 1.4, "#b8772b"));
  face.append(circle(-3.8, -2, 1.5, "#222"), circle(3.8, -2, 1.5, "#222"));
  face.append(kind === "E" ? svg("path", { d: mouth, fill: "none", stroke: "#7b8794", "stroke-width": 4, "stroke-linecap": "round" }) : svg("path", { d: mouth, fill: kind === "C" || kind === "H" ? "#e8862e" : "#6b3a12" }));
  group.append(face);
  for (const [right, forward] of STEPS[kind]) group.append(svg("circle", { class: "step", cx: 14.5 * right, cy: -15.5 * forward, r: 1.6 }));
}

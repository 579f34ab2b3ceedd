// The board: what stands on it, what is drawn over it, and clicks, touches and keys on it.

import { drawPiece, isFirst, pieceName } from "./pieces.js";
import { svg } from "./svg.js";

const LAYERS = ["squares", "heat", "owners", "under", "stones", "marks", "hints", "hits"];

export class Board {
  // `onMove(name)` is called for a move, `choose(moves, game)` asks which of several moves between
  // two squares is meant.
  constructor(place, { onMove, choose, onHover }) {
    this.place = place;
    this.onMove = onMove;
    this.choose = choose;
    this.onHover = onHover;
    this.selected = null; // a square, or the letter of a piece in hand
    this.focused = 0;
    this.isFlipped = false;
    this.canPlay = () => false;
    place.addEventListener("keydown", (event) => this.key(event));
  }

  get isGo() { return this.game.game === "go"; }
  get hasPieces() { return Boolean(this.game.pieces); }
  get rows() { return this.game.board[0]; }
  get columns() { return this.game.board[1]; }

  // Shows a game from its beginning on; `game.frame` is the empty board.
  open(game) {
    this.game = game;
    this.isFlipped = false;
    this.place.innerHTML = game.frame;
    this.svg = this.place.querySelector("svg");
    this.svg.setAttribute("role", "group");
    this.svg.setAttribute("aria-label", `${game.game} board`);
    this.svg.prepend(definitions());
    const { width, height } = this.svg.viewBox.baseVal;
    const spare = game.margin - 6; // there are no coordinates on the right and below
    this.svg.setAttribute("viewBox", `0 0 ${width - spare} ${height - spare}`);
    this.svg.style.setProperty("--scale", Math.min(1, Math.max(0.42, Math.max(...game.board) / 13)));
    this.svg.querySelector(".stones").remove();
    this.layers = Object.fromEntries(LAYERS.map((name) => [name, svg("g", { class: name })]));
    const lines = this.svg.querySelector(".lines");
    lines.before(this.layers.squares);
    this.svg.append(...LAYERS.slice(1).map((name) => this.layers[name]));
    if (game.game === "chess" || game.game === "minichess") this.drawSquares();
    this.focused = 0;
    this.selected = null;
    this.names = { columns: game.names.columns.split(","), rows: game.names.rows.split(",") };
    this.makeHits();
  }

  show(game) {
    this.game = game;
    this.selected = null;
    this.draw();
  }

  flip(isFlipped) {
    if (this.isFlipped === isFlipped) return;
    this.isFlipped = isFlipped;
    if (this.svg) this.svg.querySelectorAll("text.coordinate").forEach((text) => this.turnCoordinate(text));
  }

  turnCoordinate(text) {
    const { cell, margin } = this.game;
    const [width, height] = [2 * margin + this.columns * cell, 2 * margin + this.rows * cell];
    const x = Number(text.getAttribute("x")), y = Number(text.getAttribute("y"));
    if (x < margin - 1) text.setAttribute("y", height - y);
    else text.setAttribute("x", width - x);
  }

  centre(square) {
    const { cell, margin } = this.game;
    let [row, column] = [Math.floor(square / this.columns), square % this.columns];
    if (this.isFlipped) [row, column] = [this.rows - 1 - row, this.columns - 1 - column];
    return [margin + cell / 2 + column * cell, margin + cell / 2 + row * cell];
  }

  squareName(square) {
    const [row, column] = [Math.floor(square / this.columns), square % this.columns];
    return `${this.names.columns[column]}${this.names.rows[row]}`;
  }

  squareOf(name) {
    const column = this.names.columns.findIndex((c) => name.startsWith(c));
    return this.names.rows.indexOf(name.slice(this.names.columns[column]?.length)) * this.columns + column;
  }

  drawSquares() {
    const { cell, margin } = this.game;
    for (let square = 0; square < this.rows * this.columns; square += 1) {
      const [row, column] = [Math.floor(square / this.columns), square % this.columns];
      const isDark = (this.rows - 1 - row + column) % 2 === 0;
      this.layers.squares.append(svg("rect", { class: isDark ? "dark" : "light", x: margin + column * cell, y: margin + row * cell, width: cell, height: cell }));
    }
  }

  makeHits() {
    const { cell } = this.game;
    this.hits = [];
    for (let square = 0; square < this.rows * this.columns; square += 1) {
      const hit = svg("rect", { role: "button", width: cell, height: cell, "data-square": square, "data-name": this.squareName(square) });
      hit.addEventListener("click", () => { this.focused = square; this.click(square); });
      hit.addEventListener("pointerenter", (event) => { if (event.pointerType === "mouse") this.hover(square); });
      hit.addEventListener("pointerleave", () => this.hover(null));
      hit.addEventListener("focus", () => { this.focused = square; });
      this.hits.push(hit);
    }
    this.layers.hits.replaceChildren(...this.hits);
  }

  draw() {
    const { cell } = this.game;
    const contents = this.hasPieces ? this.game.pieces : [...this.game.stones].map((s) => (s === "." ? "" : s));
    this.layers.stones.replaceChildren();
    this.layers.under.replaceChildren();
    this.layers.marks.replaceChildren();
    contents.forEach((content, square) => {
      const [x, y] = this.centre(square);
      const hit = this.hits[square];
      hit.setAttribute("x", x - cell / 2);
      hit.setAttribute("y", y - cell / 2);
      hit.setAttribute("tabindex", square === this.focused ? 0 : -1);
      hit.setAttribute("aria-label", `${this.squareName(square)}, ${this.describe(content)}`);
      hit.classList.toggle("playable", this.canPlay() && this.isPlayable(square));
      if (content) this.layers.stones.append(this.hasPieces ? this.piece(content, x, y) : this.mark(content, x, y, this.game.dead?.includes(square)));
    });
    this.drawLast();
    this.drawSelection();
  }

  describe(content) {
    if (!content) return "empty";
    if (this.hasPieces) return `${this.game.sides[isFirst(content) ? 0 : 1]} ${pieceName(this.game.game, content)}`;
    return this.isGo ? (content === "X" ? "black stone" : "white stone") : content;
  }

  piece(content, x, y) {
    const size = this.game.cell / 45;
    const place = svg("g", { transform: `translate(${x} ${y}) scale(${size * 0.94})` });
    place.append(drawPiece(this.game.game, content, this.game.glyphs, { isFlipped: this.isFlipped }));
    return place;
  }

  mark(content, x, y, isDead) {
    const { cell } = this.game, kind = content === "X" ? "black" : "white";
    if (this.isGo) {
      const stone = svg("g", { class: `stone ${kind}${isDead ? " dead" : ""}` });
      stone.append(svg("circle", { class: "shadow", cx: x + 0.5, cy: y + 0.9, r: cell * 0.47 }), svg("circle", { class: "face", cx: x, cy: y, r: cell * 0.47 }));
      return stone;
    }
    const arm = cell * 0.3;
    return content === "X"
      ? svg("path", { class: "mark-x", d: `M${x - arm} ${y - arm}L${x + arm} ${y + arm}M${x - arm} ${y + arm}L${x + arm} ${y - arm}` })
      : svg("circle", { class: "mark-o", cx: x, cy: y, r: arm * 1.1 });
  }

  drawLast() {
    const { cell } = this.game;
    for (const square of this.game.last) {
      const [x, y] = this.centre(square);
      if (this.isGo) this.layers.marks.append(svg("circle", { class: `last ${this.game.stones[square] === "X" ? "on-black" : "on-white"}`, cx: x, cy: y, r: cell * 0.2 }));
      else this.layers.under.append(svg("rect", { class: "moved", x: x - cell / 2, y: y - cell / 2, width: cell, height: cell }));
    }
    const next = this.game.line[this.game.ply]?.[1];
    if (next && next !== "pass") {
      const [x, y] = this.centre(this.squareOf(this.hasPieces ? next.slice(2, 4) : next));
      this.layers.marks.append(svg("circle", { class: "next", cx: x, cy: y, r: cell * 0.47 }));
    }
    if (this.game.check) {
      const king = this.game.to_play === 0 ? "K" : "k";
      const [x, y] = this.centre(this.game.pieces.indexOf(king));
      this.layers.under.append(svg("circle", { class: "check", cx: x, cy: y, r: cell * 0.5 }));
    }
  }

  // Moves from the selected square or of the selected piece in hand.
  get targets() {
    const moves = this.game.moves_by_squares ?? [];
    if (this.selected === null) return [];
    return moves.filter(([, start, , drop]) => (typeof this.selected === "number" ? start === this.selected : drop === this.selected));
  }

  drawSelection() {
    const { cell } = this.game;
    this.layers.under.querySelectorAll(".selected, .target").forEach((mark) => mark.remove());
    this.layers.marks.querySelectorAll(".target").forEach((mark) => mark.remove());
    if (typeof this.selected === "number") {
      const [x, y] = this.centre(this.selected);
      this.layers.under.append(svg("rect", { class: "selected", x: x - cell / 2, y: y - cell / 2, width: cell, height: cell }));
    }
    for (const end of new Set(this.targets.map((move) => move[2]))) {
      const [x, y] = this.centre(end);
      const isCapture = Boolean(this.game.pieces[end]);
      this.layers.marks.append(svg("circle", isCapture ? { class: "target capture", cx: x, cy: y, r: cell * 0.45 } : { class: "target", cx: x, cy: y, r: cell * 0.14 }));
    }
    this.hits.forEach((hit, square) => hit.classList.toggle("goal", this.targets.some((move) => move[2] === square)));
  }

  isPlayable(square) {
    if (!this.hasPieces) return this.game.legal[square] === "1";
    return this.game.moves_by_squares.some(([, start, end]) => start === square || end === square);
  }

  hover(square) {
    this.layers.hints.querySelectorAll(".ghost").forEach((ghost) => ghost.remove());
    this.onHover(square);
    if (square === null || !this.canPlay() || this.hasPieces || this.game.legal[square] !== "1") return;
    const [x, y] = this.centre(square);
    const ghost = this.mark("XO"[this.game.to_play], x, y, false);
    ghost.classList.add("ghost");
    this.layers.hints.prepend(ghost);
  }

  select(what) {
    this.selected = this.selected === what ? null : what;
    this.drawSelection();
  }

  async click(square) {
    if (!this.canPlay()) return;
    if (!this.hasPieces) {
      if (this.game.legal[square] === "1") this.onMove(this.squareName(square));
      return;
    }
    const moves = this.targets.filter((move) => move[2] === square);
    if (!moves.length) {
      const starts = this.game.moves_by_squares.some((move) => move[1] === square);
      if (starts) this.select(square);
      else { this.selected = null; this.drawSelection(); }
      return;
    }
    const move = moves.length === 1 ? moves[0] : await this.choose(moves, this.game);
    this.selected = null;
    this.drawSelection();
    if (move) this.onMove(move[0]);
  }

  key(event) {
    const steps = { ArrowUp: -this.columns, ArrowDown: this.columns, ArrowLeft: -1, ArrowRight: 1 };
    if (!event.target.dataset?.square || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Enter" || event.key === " ") this.click(this.focused);
    else if (event.key === "Escape" && this.selected !== null) this.select(this.selected);
    else if (event.key in steps) {
      const step = this.isFlipped ? -steps[event.key] : steps[event.key];
      const next = this.focused + step;
      const isSameRow = Math.floor(next / this.columns) === Math.floor(this.focused / this.columns);
      if (next >= 0 && next < this.hits.length && (Math.abs(step) > 1 || this.columns === 1 || isSameRow)) {
        this.hits[this.focused].setAttribute("tabindex", -1);
        this.focused = next;
        this.hits[next].setAttribute("tabindex", 0);
        this.hits[next].focus();
      }
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }
}

function definitions() {
  const stop = (offset, colour) => svg("stop", { offset, "stop-color": colour });
  const stone = (id, ...colours) => svg("radialGradient", { id, cx: "36%", cy: "30%", r: "78%" }, ...colours.map((colour, index) => stop(index / (colours.length - 1), colour)));
  return svg("defs", {}, stone("stone-black", "#63656b", "#2a2b2f", "#0d0d0f"), stone("stone-white", "#ffffff", "#f2f0ea", "#c9c6bd"));
}

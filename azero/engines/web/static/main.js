// The page: one game, the searches on its position, and what visitors do.

import { events, get, post, upload } from "./api.js";
import { Board } from "./board.js";
import { drawGraph } from "./graph.js";
import { listen } from "./controls.js";
import { askForGame, askForPromotion } from "./dialogs.js";
import { clearOverlays, drawLine, drawOverlay } from "./overlays.js";
import { drawChances, drawLines, drawMoveList, drawPlace, drawPlayers, listMistakes } from "./panels.js";
import { watchRun } from "./runs.js";
import { byId } from "./svg.js";

const POLL_MS = 700;
const DEFAULTS = { human: "0", unit: "visits", amount: 200 };

const state = {
  server: null, // what the server offers
  game: null,
  setup: { ...DEFAULTS }, // who plays, and how long the network thinks
  analyses: new Map(), // by ply
  chances: new Map(), // by ply: the first mover's, for the graph
  mistakes: [],
  isReviewed: false, // whether the list of mistakes is complete
  search: null, // AbortController of the running search
  searchKind: null, // play, analysis or review
  isBusy: false, // a request is on its way
  file: null, // the record that was opened, and the id of its game
  beginning: null, // the request for a new game that is on its way
  asked: null, // what that or a refused new game was asked with
  shownLine: null, // index of the line that is looked at
  problem: "", // what went wrong with the last request
  isCut: false, // whether the connection was lost during the last request
};

const board = new Board(byId("board"), {
  onMove: (name) => change("play", { move: name, ply: state.game.ply }, true),
  choose: (moves, game) => askForPromotion(moves, game),
  onHover: (square) => hoverMove(square),
});
board.canPlay = () => Boolean(state.game) && !state.game.over && !state.isBusy && state.searchKind !== "review" && isHumanTurn();

const isHumanTurn = () => {
  const { human } = state.setup;
  return human === "both" || human === "analysis" || (human !== "none" && Number(human) === state.game.to_play);
};
const network = () => state.server.networks.find(({ key }) => key === state.game.network);

function fail(text) {
  state.problem = `${text[0].toUpperCase()}${text.slice(1)}${/[.?!]$/.test(text) ? "" : "."}`;
  say(state.problem, "error");
}

function say(text, kind = "") {
  const message = byId("message");
  message.textContent = text;
  message.className = kind;
}

function showStatus(name, text) {
  const status = byId("status");
  status.dataset.state = name;
  status.querySelector(".text").textContent = text;
}

// ---- the game ----

function openGame(game) {
  stopSearch();
  state.game = game;
  state.asked = null;
  state.analyses.clear();
  state.chances.clear();
  setMistakes([], false);
  board.open(game);
  board.flip(state.setup.human === "1" && Boolean(game.pieces));
  document.body.dataset.game = game.game;
  byId("network").textContent = game.player;
  byId("tab-run").hidden = !network().is_run;
  if (!byId("panel-run").hidden) selectTab(network().is_run ? "run" : "analysis");
  remember();
  render();
}

// Stores for this tab what a reloaded page needs.
function remember() {
  sessionStorage.setItem("azero-game", JSON.stringify({ id: state.game.id, setup: state.setup, analyses: byId("analyse").checked }));
}

function showGame(game) {
  const before = state.game;
  state.game = { ...before, ...game };
  const same = (index) => before.line[index]?.[1] === state.game.line[index]?.[1];
  let ply = 0;
  while (ply < state.game.line.length && same(ply)) ply += 1;
  for (const known of [state.analyses, state.chances]) for (const key of [...known.keys()]) if (key > ply) known.delete(key);
  if (state.mistakes.some((mistake) => mistake.ply > ply)) setMistakes(state.mistakes.filter((mistake) => mistake.ply <= ply), state.isReviewed);
  if (before.over) state.chances.delete(before.ply);
  if (state.game.over && state.game.ply === state.game.line.length) {
    const rate = { 0: 1, 1: 0 }[state.game.winner] ?? 0.5;
    state.chances.set(state.game.ply, { rate });
  }
  render();
}

function render() {
  const { game } = state;
  if (!game) return;
  state.shownLine = null;
  showTurn();
  board.show(game);
  drawPlayers(state, board, isHumanTurn());
  drawMoveList(game, (ply) => goTo(ply));
  renderAnalysis();
  const isSearching = state.searchKind === "play" || state.searchKind === "review";
  byId("ply").textContent = game.line.length === game.ply ? game.ply : `${game.ply} / ${game.line.length}`;
  for (const id of ["first", "back"]) byId(id).disabled = game.ply === 0;
  for (const id of ["forward", "last"]) byId(id).disabled = game.ply === game.line.length;
  byId("undo").disabled = plyToUndo() < 0;
  byId("pass").hidden = game.game !== "go";
  byId("pass").disabled = !board.canPlay();
  byId("resign").disabled = game.over || !["0", "1", "both"].includes(state.setup.human) || isSearching;
  byId("review").disabled = false;
  byId("save").disabled = !game.saves;
  byId("save").title = game.saves ? `Save as ${game.saves.slice(1).toUpperCase()}` : "There is no file format for this game";
  if (state.problem) say(state.problem, "error");
  else if (game.over) say(`${game.result}.`, "result");
  else if (state.searchKind === "play") say("The network thinks …");
  else if (state.searchKind === "review") say("The network reviews the game …");
  else if (isHumanTurn()) say(state.setup.human === "analysis" || state.setup.human === "both" ? `${game.sides[game.to_play]} to move.` : "Your move.");
  else say(`${game.sides[game.to_play]} to move.`);
  if (game.note && !state.problem) byId("message").append(` ${game.note}`);
  drawPlace(game, state.file?.id === game.id);
}

function renderAnalysis() {
  const analysis = state.analyses.get(state.game.ply) ?? null;
  drawLines(state.game, analysis, board, { onLook: lookAtLine, onPlay: (name) => board.canPlay() && change("play", { move: name, ply: state.game.ply }, true) });
  drawChances(state.game, state.chances.get(state.game.ply));
  const overlay = document.querySelector("input[name=overlay]:checked").value;
  const isShown = byId("analyse").checked || state.searchKind === "review" || state.mistakes.length > 0;
  if (state.shownLine !== null && analysis?.moves[state.shownLine]) drawLine(board, analysis.moves[state.shownLine].pv, analysis.toPlay);
  else if (isShown) drawOverlay(board, overlay, analysis);
  else clearOverlays(board);
  drawGraph(state.game, state.chances, new Set(state.mistakes.map(({ ply }) => ply)), (ply) => goTo(ply));
}

function lookAtLine(index) {
  state.shownLine = index;
  renderAnalysis();
}

function hoverMove(square) {
  const analysis = state.game && state.analyses.get(state.game.ply);
  if (!analysis || board.hasPieces || !byId("analyse").checked) return;
  const name = square === null ? null : board.squareName(square);
  const index = analysis.moves.findIndex((move) => move.pv[0] === name);
  const shown = index < 0 ? null : index;
  if (shown !== state.shownLine) lookAtLine(shown);
}

// ---- requests ----

async function attempt(work) {
  state.isBusy = true;
  state.problem = "";
  state.isCut = false;
  showTurn();
  try {
    return await work();
  } catch (error) {
    if (error.status === 409) showGame(await get(`/api/games/${state.game.id}`).catch(() => state.game));
    state.isCut = error.status === 0;
    fail(error.message);
    return null;
  } finally {
    state.isBusy = false;
    showTurn();
  }
}

// Says on the board whose turn it is: yours, network, over, or busy while a request is on its way.
function showTurn() {
  const { game } = state;
  const turn = state.isBusy || !game ? "busy" : game.over ? "over" : isHumanTurn() ? "yours" : "network";
  byId("board").dataset.turn = turn;
}

// Changes the game, and lets the network answer if it is its turn and `answers`.
async function change(what, fields, answers = false) {
  if (state.isBusy) return;
  stopSearch();
  if (network().state === "compiling") say("Preparing the rules …");
  const game = await attempt(() => post(`/api/games/${state.game.id}/${what}`, fields));
  if (game) {
    showGame(game);
    proceed(answers);
  } else if (state.isCut) render();  // the network may have played meanwhile: see catchUp
  else resume();
}

const goTo = (ply) => {
  if (ply !== state.game.ply && ply >= 0 && ply <= state.game.line.length) return change("goto", { ply }, ply === state.game.line.length);
  return null;
};

// Returns the ply at which the visitor last was to move, or is without a resignation; -1 if there is none.
function plyToUndo() {
  const { game, setup } = state;
  const mover = (ply) => (ply === game.ply ? game.to_play : game.line[ply][0]);
  let ply = game.resigned ? game.ply : game.ply - 1;
  if (["0", "1"].includes(setup.human)) while (ply >= 0 && mover(ply) !== Number(setup.human)) ply -= 1;
  return ply;
}

// Takes back a resignation, else a move, and moves until it is the visitor's turn.
function undo() {
  const ply = plyToUndo();
  if (ply === state.game.ply) change("unresign", {}, true);
  else if (ply >= 0) change("goto", { ply }, true);
}

// ---- searches ----

function stopSearch() {
  const isReview = state.searchKind === "review";
  state.search?.abort();
  state.search = null;
  state.searchKind = null;
  showReady();
  if (isReview) finishReview(false);
}

// Starts the search that the position needs: the network's move, or the analysis.
function proceed(answers) {
  const { game, setup } = state;
  if (!game || state.isBusy) return;
  if (answers && !game.over && !isHumanTurn()) {
    const fields = { plays: true, ownership: wantsOwners() };
    search("play", "think", { ...fields, [setup.unit]: Number(setup.amount) });
  } else if (byId("analyse").checked && !game.over && state.searchKind === null) {
    search("analysis", "think", { ownership: wantsOwners() });
  } else render();
}

// Continues the game where a request interrupted it.
const resume = () => { if (state.searchKind === null) proceed(state.game?.ply === state.game?.line.length); };

const wantsOwners = () => state.game.game === "go" && document.querySelector("input[name=overlay]:checked").value === "owners";

async function search(kind, path, fields) {
  stopSearch();
  const controller = new AbortController();
  state.search = controller;
  state.searchKind = kind;
  state.isCut = false;
  render();
  const isCurrent = () => state.search === controller;
  let played = false;
  try {
    await events(`/api/games/${state.game.id}/${path}`, fields, controller.signal, (what, data) => {
      if (!isCurrent()) return;
      if (what === "game") played = true;
      receive(what, data);
    });
  } catch (error) {
    if (error.name !== "AbortError" && isCurrent()) {
      state.isCut = error.status === 0;
      fail(error.message);
    }
  }
  if (!isCurrent()) return;
  state.search = null;
  state.searchKind = null;
  showReady();
  if (kind === "review") finishReview(!state.problem);
  if (kind === "play" && !played && !state.problem) fail("this game continues in another tab");
  if (played) proceed(true);
  else if (kind !== "analysis") render();
}

function receive(what, data) {
  if (what === "status") {
    showStatus(data.state, data.state === "compiling" ? "compiling" : "waiting for its turn");
    if (data.state === "compiling" && state.searchKind === "play") say("The network is being compiled, which takes longer the first time; then it plays.");
  }
  else if (what === "analysis") receiveAnalysis(data);
  else if (what === "game") { state.searchKind = null; showGame(data); }
  else if (what === "move") receiveMove(data);
  else if (what === "error") { fail(data.error); byId("analyse").checked = false; }
}

function receiveAnalysis(analysis) {
  showStatus("thinking", state.searchKind === "review" ? "reviewing" : "thinking");
  const before = state.analyses.get(analysis.ply);
  if (before?.ownership && !analysis.ownership) analysis.ownership = before.ownership;
  for (const move of analysis.moves) move.lead ??= before?.moves.find(({ pv }) => pv[0] === move.pv[0])?.lead;
  state.analyses.set(analysis.ply, analysis);
  const turn = (value, whole) => (analysis.toPlay === 0 ? value : whole - value);
  const lead = analysis.scoreLead === undefined ? {} : { lead: turn(analysis.scoreLead, 0) };
  state.chances.set(analysis.ply, { rate: turn(analysis.winrate, 1), ...lead });
  if (state.searchKind === "review") byId("review-progress").value = analysis.ply;
  if (analysis.ply === state.game.ply || state.searchKind === "review") renderAnalysis();
}

// ---- review ----

function receiveMove(move) {
  if (!state.chances.has(move.ply)) state.chances.set(move.ply, { rate: move.firstWinrate });
  if (move.loss >= 0.02) state.mistakes.push(move);
}

function setMistakes(mistakes, isReviewed) {
  Object.assign(state, { mistakes, isReviewed });
  listMistakes(state, (ply) => { document.querySelector("input[name=overlay][value=moves]").checked = true; goTo(ply - 1); });
}

function startReview() {
  stopSearch();
  state.problem = "";
  setMistakes([], false);
  const progress = byId("review-progress");
  progress.hidden = false;
  progress.max = Math.max(1, state.game.line.length);
  progress.value = 0;
  byId("review").textContent = "Stop";
  search("review", "review", { visits: Number(byId("review-visits").value) });
}

function finishReview(isComplete) {
  byId("review-progress").hidden = true;
  byId("review").textContent = "Review the game";
  setMistakes(state.mistakes.sort((a, b) => b.loss - a.loss).slice(0, 12), isComplete);
  render();
}

// ---- starting and opening ----

async function newGame() {
  if (!state.server) return;
  const setup = await askForGame(state);
  if (setup) await start(setup);
}

// Returns the game that `work` begins; null if there is none, or another one was asked for meanwhile.
async function beginGame(work) {
  state.beginning = work;
  showReady();
  const game = await attempt(work);
  if (state.beginning !== work) return null;
  state.beginning = null;
  showReady();
  return game;
}

async function start({ fields, ...setup }) {
  state.asked = { fields, ...setup };
  say("Preparing the rules …");
  const game = await beginGame(() => post("/api/games", fields));
  if (!game) { resume(); return; }
  state.setup = setup;
  byId("analyse").checked = setup.human === "analysis" || byId("analyse").checked;
  openGame(game);
  proceed(true);
}

async function openFile(file, number = 1) {
  if (!state.server) return;
  if (file.size > state.server.limits.upload_bytes) {
    fail(`this file is larger than ${Math.round(state.server.limits.upload_bytes / 1024)} KiB`);
    return;
  }
  const query = new URLSearchParams({ name: file.name, network: state.game?.network ?? "0", game: number });
  const game = await beginGame(() => upload(`/api/records?${query}`, file));
  if (game) state.file = { file, id: game.id };
  openRecord(game);
}

function openRecord(game) {
  if (!game) { resume(); return; }
  state.setup = { ...state.setup, human: "analysis" };
  openGame(game);
  selectTab("review");
  proceed(false);
}

function save() {
  const { game, setup } = state;
  const visitor = setup.human === "analysis" ? "" : "You"; // nobody plays where games are only analysed
  const names = [0, 1].map((side) => (setup.human === "none" || (["0", "1"].includes(setup.human) && Number(setup.human) !== side) ? game.player : visitor));
  const query = new URLSearchParams({ first: names[0], second: names[1] });
  const link = Object.assign(document.createElement("a"), { href: `/api/games/${game.id}/record?${query}`, download: "" });
  link.click();
}

function selectTab(name) {
  for (const tab of document.querySelectorAll("[role=tab]")) {
    const isChosen = tab.id === `tab-${name}`;
    tab.setAttribute("aria-selected", isChosen);
    tab.tabIndex = isChosen ? 0 : -1;
    byId(tab.getAttribute("aria-controls")).hidden = !isChosen;
  }
  byId("graph").classList.toggle("off", name === "run");
  watchRun(name === "run" ? state.game.network : null, openRecord);
}

function showReady() {
  const known = state.server?.networks.find(({ key }) => key === (state.game?.network ?? "0"));
  if (known?.state === "failed") showStatus("failed", "failed");
  else if (state.beginning) showStatus("compiling", "preparing the rules");
  else if (!known || known.state === "compiling") showStatus("compiling", "compiling");
  else showStatus("ready", "ready");
}

// Asks how far the server is until its networks are ready.
async function follow() {
  try {
    const server = await get("/api/server");
    if (server.state === "ready") {
      const isFirst = state.server === null;
      state.server = server;
      if (isFirst) await begin();
      const known = server.networks.find(({ key }) => key === (state.game?.network ?? "0"));
      if (known?.state === "failed") fail(known.problem);
      if (state.isCut && !state.isBusy && !state.search) await catchUp();
      if (!state.search) showReady();
      if (known?.state !== "compiling") { setTimeout(follow, 10 * POLL_MS); return; }
    }
  } catch (error) {
    showStatus("failed", "no connection");
    if (!state.server) say(error.message, "error");
  }
  setTimeout(follow, POLL_MS);
}

// Continues after a lost connection: the server may have carried out the last request.
async function catchUp() {
  if (!state.game) return begin();
  const game = await attempt(() => get(`/api/games/${state.game.id}`));
  if (!game) return null;
  showGame(game);
  return resume();
}

// Continues the game of this tab, or begins one.
async function begin() {
  const kept = JSON.parse(sessionStorage.getItem("azero-game") ?? "null");
  if (kept) {
    const game = await get(`/api/games/${kept.id}`).catch((error) => {
      if (error.status === 404) return null;
      state.server = null;
      throw error;
    });
    if (game) {
      state.setup = kept.setup;
      byId("analyse").checked = kept.analyses;
      openGame(game);
      resume();  // the network's search ended with the page before
      return;
    }
  }
  const amount = Math.min(DEFAULTS.amount, state.server.limits.visits);
  await start({ ...DEFAULTS, amount, fields: { network: "0" } });
}

listen({
  state, board, stopSearch, proceed, newGame, catchUp, openFile, save, undo, goTo, change, startReview, selectTab, wantsOwners, renderAnalysis, remember,
});
follow();

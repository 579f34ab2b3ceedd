// Buttons, keys, drops: what a visitor does.

import { byId } from "./svg.js";

// Connects the page's controls with what they do; `page` has the state and the actions.
export function listen(page) {
  const { state, board } = page;
  const on = (id, work) => byId(id).addEventListener("click", work);
  on("new", page.newGame);
  on("open", () => byId("file").click());
  on("save", page.save);
  on("undo", page.undo);
  on("pass", () => board.canPlay() && page.change("play", { move: "pass", ply: state.game.ply }, true));
  on("resign", () => page.change("resign", { colour: ["0", "1"].includes(state.setup.human) ? Number(state.setup.human) : state.game.to_play }));
  on("first", () => page.goTo(0));
  on("back", () => page.goTo(state.game.ply - 1));
  on("forward", () => page.goTo(state.game.ply + 1));
  on("last", () => page.goTo(state.game.line.length));
  on("review", () => {
    if (state.searchKind !== "review") page.startReview();
    else page.stopSearch();
  });
  byId("file").addEventListener("change", (event) => {
    if (event.target.files[0]) page.openFile(event.target.files[0]);
    event.target.value = "";
  });
  byId("place").addEventListener("change", (event) => page.openFile(state.file.file, event.target.value));
  byId("analyse").addEventListener("change", (event) => {
    if (!event.target.checked && state.searchKind === "analysis") page.stopSearch();
    if (state.game) page.remember();
    page.proceed(false);
  });
  for (const input of document.querySelectorAll("input[name=overlay]")) input.addEventListener("change", () => {
    if (page.wantsOwners() && state.searchKind !== "play" && byId("analyse").checked && !state.analyses.get(state.game.ply)?.ownership) { page.stopSearch(); page.proceed(false); }
    page.renderAnalysis();
  });
  for (const tab of document.querySelectorAll("[role=tab]")) tab.addEventListener("click", () => page.selectTab(tab.id.slice(4)));
  document.querySelector("[role=tablist]").addEventListener("keydown", (event) => {
    const tabs = [...document.querySelectorAll("[role=tab]:not([hidden])")];
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    const next = tabs[(tabs.indexOf(event.target) + step + tabs.length) % tabs.length];
    next.click();
    next.focus();
    event.stopPropagation();
  });
  document.addEventListener("keydown", (event) => key(event, state));
  // A hidden tab does not analyse: a browser has only six connections to one server.
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden && state.game && !state.isBusy && state.searchKind === null) page.catchUp();  // another tab may have the same game
    else if (state.searchKind === "analysis") page.stopSearch();
  });
  listenForDrops(page);
}

function key(event, state) {
  if (event.ctrlKey || event.metaKey || event.altKey || !state.game) return;
  if (event.target.closest("input:not([type=checkbox], [type=radio]), select, textarea, dialog")) return;
  const isRadio = event.target.matches("input[type=radio]") && event.key.startsWith("Arrow");
  const id = { ArrowLeft: "back", ArrowRight: "forward", Home: "first", End: "last", u: "undo", p: "pass", n: "new", o: "open" }[event.key];
  if (event.key === "a") byId("analyse").click();
  else if (id && !isRadio) byId(id).click();
  else return;
  event.preventDefault();
}

function listenForDrops(page) {
  const cover = byId("drop");
  const hasFiles = (event) => event.dataTransfer?.types.includes("Files");
  document.addEventListener("dragenter", (event) => { if (hasFiles(event)) cover.hidden = false; });
  document.addEventListener("dragover", (event) => { if (hasFiles(event)) event.preventDefault(); });
  cover.addEventListener("dragleave", () => { cover.hidden = true; });
  document.addEventListener("drop", (event) => {
    cover.hidden = true;
    if (!hasFiles(event)) return;
    event.preventDefault();
    page.openFile(event.dataTransfer.files[0]);
  });
}

/**
 * The style of the element, which a strict content security policy lets pass: it is no `<style>` and no attribute.
 *
 * @module
 */

/** The rules. The sizes and colours that begin with `--tracefx-` are the page's to set. */
export const STYLE = `
:host {
  color-scheme: light dark;
  display: block;
  height: 32rem;
  border: 1px solid light-dark(#a9b2c0, #4b586b);
  background: light-dark(#f8f9fb, #12161d);
  color: light-dark(#1b2330, #e8edf4);
  font: 14px/1.4 system-ui, sans-serif;
  container-type: inline-size;
}
:host([hidden]) { display: none; }
:host([theme="light"]) { color-scheme: light; }
:host([theme="dark"]) { color-scheme: dark; }
.all {
  display: grid;
  grid-template: auto minmax(0, 1fr) auto auto / minmax(0, 1fr) auto;
  height: 100%;
}
.bar {
  grid-column: 1 / -1;
  display: flex;
  flex-wrap: wrap;
  gap: 0.4rem;
  align-items: center;
  padding: 0.4rem;
  border-bottom: 1px solid light-dark(#d3d9e2, #333e4e);
}
.stage { position: relative; overflow: hidden; min-height: 4rem; }
.bar input { flex: 1 1 10rem; min-width: 6rem; max-width: 24rem; }
.grow { flex: 1; }
.canvas { display: block; position: absolute; inset: 0; width: 100%; height: 100%; touch-action: none; cursor: grab; }
.canvas:active { cursor: grabbing; }
.tree { position: absolute; inset: 0; pointer-events: none; }
.tree:focus-visible { outline: 3px solid light-dark(#0b5fc1, #6cb2ff); outline-offset: -3px; }
.tree > * { position: absolute; clip-path: inset(50%); width: 1px; height: 1px; overflow: hidden; white-space: nowrap; }
.side {
  display: flex;
  flex-direction: column;
  min-height: 0;
  width: var(--tracefx-panel-width, 19rem);
  border-left: 1px solid light-dark(#d3d9e2, #333e4e);
  overflow-wrap: anywhere;
}
.panel { flex: 1; min-height: 0; overflow: auto; padding: 0 0.8rem 0.8rem; }
.given {
  flex: none;
  max-height: 55%;
  overflow: auto;
  padding: 0 0.8rem 0.6rem;
  border-bottom: 1px solid light-dark(#d3d9e2, #333e4e);
}
.given fieldset { display: flex; flex-wrap: wrap; gap: 0.3rem; align-items: center; margin: 0.3rem 0 0; padding: 0.3rem 0.5rem; border: 1px solid light-dark(#d3d9e2, #333e4e); border-radius: 5px; }
.given textarea { flex: 1 1 100%; min-width: 0; box-sizing: border-box; }
.given code { font-size: 12px; }
.hint { margin: 0; color: light-dark(#556070, #a4b0c0); font-size: 12.5px; }
.dropping { outline: 3px dashed light-dark(#0b5fc1, #6cb2ff); outline-offset: -3px; }
[hidden] { display: none !important; }
.slice { margin-top: 0.5rem; }
.slice .values {
  display: block;
  image-rendering: pixelated;
  cursor: crosshair;
  border: 1px solid light-dark(#a9b2c0, #4b586b);
  box-sizing: border-box;
}
.pickers, .legend { display: flex; flex-wrap: wrap; gap: 0.3rem 0.6rem; align-items: center; margin: 0.3rem 0; font-size: 12px; }
.legend { flex-wrap: nowrap; }
.slice .scale { flex: 1; width: 0; height: 0.7rem; }
.slice .place { width: 4.5rem; }
.pickers :is(input, select) { min-height: 1.5rem; padding: 0 0.3rem; }
.slice .told { font-family: ui-monospace, monospace; font-size: 12px; }
.console {
  grid-column: 1 / -1;
  padding: 0.4rem 0.6rem;
  border-top: 1px solid light-dark(#d3d9e2, #333e4e);
}
.console form { display: flex; flex-wrap: wrap; gap: 0.4rem; align-items: center; }
.console .command { flex: 1 1 16rem; min-width: 6rem; font-family: ui-monospace, monospace; font-size: 13px; }
.console .log { margin: 0 0 0.3rem; max-height: 7rem; overflow: auto; font-family: ui-monospace, monospace; font-size: 12.5px; }
.console .log p { margin: 0; white-space: pre-wrap; }
.console .refused { color: light-dark(#a11d1d, #ff9c9c); }
.console .offers { margin: 0.3rem 0 0; padding: 0; max-height: 8rem; overflow: auto; list-style: none; font-family: ui-monospace, monospace; font-size: 12.5px; }
.console .offers [aria-selected="true"] { background: light-dark(#d8e7f9, #1d3c5e); }
.status {
  grid-column: 1 / -1;
  margin: 0;
  padding: 0.2rem 0.6rem;
  min-height: 1.4em;
  border-top: 1px solid light-dark(#d3d9e2, #333e4e);
  color: light-dark(#556070, #a4b0c0);
  white-space: pre-wrap;
}
button, input, select, textarea {
  font: inherit;
  color: inherit;
  background: light-dark(#ffffff, #212834);
  border: 1px solid light-dark(#8a94a5, #5d6b80);
  border-radius: 5px;
  padding: 0.15rem 0.5rem;
  min-height: 1.8rem;
}
button { cursor: pointer; }
button:disabled { opacity: 0.5; cursor: default; }
button[aria-pressed="true"] { background: light-dark(#d8e7f9, #1d3c5e); }
button:focus-visible, input:focus-visible, select:focus-visible, pre:focus-visible, textarea:focus-visible,
.panel:focus-visible, .values:focus-visible {
  outline: 2px solid light-dark(#0b5fc1, #6cb2ff);
  outline-offset: 1px;
}
.panel button { padding: 0 0.35rem; min-height: 1.5rem; text-align: left; font-family: ui-monospace, monospace; font-size: 12px; }
h3 { font-size: 1rem; margin: 0.9rem 0 0.3rem; }
dl { display: grid; grid-template-columns: minmax(4rem, auto) minmax(0, 1fr); gap: 0.15rem 0.6rem; margin: 0; }
dt { color: light-dark(#556070, #a4b0c0); }
dd { margin: 0; font-family: ui-monospace, monospace; font-size: 12.5px; }
section p { margin: 0.15rem 0; font-family: ui-monospace, monospace; font-size: 12.5px; }
pre { margin: 0; overflow: auto; max-height: 14rem; font-size: 12px; }
.histogram { width: 100%; margin-top: 0.4rem; fill: light-dark(#3b76c4, #6ea6ee); }
@container (max-width: 36rem) {
  .all { grid-template: auto minmax(0, 1fr) minmax(0, 0.8fr) auto auto / minmax(0, 1fr); }
  .side { width: auto; border-left: none; border-top: 1px solid light-dark(#d3d9e2, #333e4e); }
}
`;

// Ask the key encoders of newer terminals, which npm has, and print rows as record_keys.py does:
//   npm install @xterm/xterm@6.0.0 xterm-beta@npm:@xterm/xterm@6.1.0-beta.337 ghostty-web@0.4.0 esbuild
//   python -m tests.terminals.record_keys --list | node newer.mjs FOLDER_WITH_node_modules
// VS Code's terminal is xterm.js; its kitty protocol is off unless it is switched on.
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const folder = process.argv[2];
const { keys, elsewhere, asked } = JSON.parse(readFileSync(0, "utf8"));
const load = createRequire(join(folder, "x.js"));
const esbuild = load("esbuild");
const hex = (text) => Buffer.from(text, "utf8").toString("hex");

const CODES = {
  enter: ["Enter", 13], escape: ["Escape", 27], backspace: ["Backspace", 8], tab: ["Tab", 9],
  space: ["Space", 32], up: ["ArrowUp", 38], down: ["ArrowDown", 40], left: ["ArrowLeft", 37],
  right: ["ArrowRight", 39], home: ["Home", 36], end: ["End", 35], pageup: ["PageUp", 33],
  pagedown: ["PageDown", 34], insert: ["Insert", 45], delete: ["Delete", 46],
  kp_enter: ["NumpadEnter", 13], kp_1: ["Numpad1", 97],
};
const SIGNS = {
  slash: "/", question_mark: "?", exclamation_mark: "!", at: "@", number_sign: "#",
  less_than_sign: "<", greater_than_sign: ">", full_stop: ".", comma: ",", underscore: "_",
  minus: "-", left_square_bracket: "[", right_square_bracket: "]", backslash: "\\",
  circumflex_accent: "^",
};
const SHIFTED = { "?": "/", "!": "1", "@": "2", "#": "3", "<": ",", ">": ".", _: "-", "^": "6" };
const PUNCTUATION = {
  "/": ["Slash", 191], ".": ["Period", 190], ",": ["Comma", 188], "-": ["Minus", 189],
  "[": ["BracketLeft", 219], "]": ["BracketRight", 221], "\\": ["Backslash", 220],
};
const OTHER = {
  ru: { c: "с", y: "н", n: "т", r: "к", z: "я", b: "и", f: "а", "/": ".", "[": "х" },
  "gr,us": { c: "ψ", y: "υ", n: "ν", r: "ρ", z: "ζ", b: "β", f: "φ" },
};

// What a browser tells of a key: the place of the key (`code`, `keyCode`) and what it types (`key`).
function pressed(name, layout) {
  const held = name.split("+");
  let key = held.pop();
  let [shift, ctrl, alt] = ["shift", "ctrl", "alt"].map((one) => held.includes(one));
  let char = SIGNS[key] ?? (key === "space" ? " " : [...key].length === 1 ? key : undefined);
  if (key === "kp_1") char = "1";
  let [code, number] = CODES[key] ?? [];
  if (/^f\d+$/.test(key)) [code, number] = [key.toUpperCase(), 111 + Number(key.slice(1))];
  let base;
  if (char && !code) {
    base = SHIFTED[char] ?? char.toLowerCase();
    shift ||= base !== char;
    if (/[a-z]/.test(base)) [code, number] = [`Key${base.toUpperCase()}`, base.toUpperCase().charCodeAt(0)];
    else if (/\d/.test(base)) [code, number] = [`Digit${base}`, base.charCodeAt(0)];
    else [code, number] = PUNCTUATION[base];
    base = OTHER[layout]?.[base] ?? base;
    char = SHIFTED[char] && layout === "us" ? char : shift && /\p{L}/u.test(base) ? base.toUpperCase() : base;
  }
  const dom = {
    key: char ?? { escape: "Escape", enter: "Enter", kp_enter: "Enter" }[key] ?? code,
    code, keyCode: number, shiftKey: shift, ctrlKey: ctrl, altKey: alt, metaKey: false, repeat: false,
    type: "keydown", location: 0, getModifierState: () => false,
  };
  return { dom, char, base: base ?? char };
}

function rows(terminal, version, encode) {
  for (const [mode, on] of [["legacy", false], ["asked", true]])
    for (const layout of ["us", "ru", "gr,us"]) {
      const sent = {};
      for (const name of layout === "us" ? keys : elsewhere)
        sent[name] = hex(encode(pressed(name, layout), on) ?? "");
      console.log(JSON.stringify({ terminal, version, mode, layout, sent }));
    }
}

async function bundled(packaged, path) {
  const out = join(folder, `${packaged}-${path.replaceAll("/", "-")}.mjs`);
  await esbuild.build({
    entryPoints: [join(folder, "node_modules", packaged, "src", path)],
    bundle: true, format: "esm", outfile: out, logLevel: "error",
    alias: { common: join(folder, "node_modules", packaged, "src/common") },
    tsconfigRaw: { compilerOptions: { experimentalDecorators: true } },
  });
  return import(pathToFileURL(out));
}

const typed = ({ dom, char }) => (char && !dom.ctrlKey && !dom.altKey ? char : "");
const version = (name) => JSON.parse(readFileSync(join(folder, "node_modules", name, "package.json"))).version;

const legacy = await bundled("@xterm/xterm", "common/input/Keyboard.ts");
rows("xterm.js", version("@xterm/xterm"), (one) =>
  legacy.evaluateKeyboardEvent(one.dom, false, false, false).key ?? typed(one));

const newer = await bundled("xterm-beta", "common/input/Keyboard.ts");
const { KittyKeyboard } = await bundled("xterm-beta", "common/input/KittyKeyboard.ts");
const kitty = new KittyKeyboard();
rows("xterm.js with kittyKeyboard", version("xterm-beta"), (one, on) =>
  (on ? kitty.evaluate(one.dom, asked, 1).key
      : newer.evaluateKeyboardEvent(one.dom, false, false, false).key) ?? typed(one));

globalThis.self ??= globalThis;
const web = await import(pathToFileURL(join(folder, "node_modules/ghostty-web/dist/ghostty-web.js")));
const wasm = readFileSync(join(folder, "node_modules/ghostty-web/ghostty-vt.wasm"));
globalThis.fetch = async () => new Response(wasm, { headers: { "content-type": "application/wasm" } });
const ghostty = await web.Ghostty.load("ghostty-vt.wasm");
const encoder = ghostty.createKeyEncoder();
// Not by its own `encode`, which leaves out the character of the key without Shift.
rows("ghostty", `ghostty-web ${version("ghostty-web")}`, ({ dom, char, base }, on) => {
  encoder.setOption(3, true);  // Alt sends Esc, as Ghostty has it
  encoder.setOption(5, on ? asked : 0);
  const { exports } = encoder;
  const memory = () => new DataView(exports.memory.buffer);
  const out = exports.ghostty_wasm_alloc_opaque();
  exports.ghostty_key_event_new(0, out);
  const event = memory().getUint32(out, true);
  const text = new TextEncoder().encode(char ?? "");
  const place = exports.ghostty_wasm_alloc_u8_array(64 + text.length);
  const size = exports.ghostty_wasm_alloc_usize();
  new Uint8Array(exports.memory.buffer).set(text, place + 64);
  const shift = dom.shiftKey ? 1 : 0;
  exports.ghostty_key_event_set_action(event, 1);
  exports.ghostty_key_event_set_key(event, web.InputHandler.prototype.mapKeyCode(dom.code));
  exports.ghostty_key_event_set_mods(event, shift | (dom.ctrlKey ? 2 : 0) | (dom.altKey ? 4 : 0));
  exports.ghostty_key_event_set_consumed_mods(event, shift && char !== base ? 1 : 0);
  exports.ghostty_key_event_set_utf8(event, place + 64, text.length);
  exports.ghostty_key_event_set_unshifted_codepoint(event, base?.codePointAt(0) ?? 0);
  exports.ghostty_key_encoder_encode(encoder.encoder, event, place, 64, size);
  return Buffer.from(exports.memory.buffer, place, memory().getUint32(size, true)).toString("utf8");
});

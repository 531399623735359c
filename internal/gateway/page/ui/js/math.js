// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Formulas in TeX, as MathML. The library is loaded with the first formula. Elements are made of its tree: a formula makes
// nothing but MathML, without links.

import { el } from './dom.js';
import { safe } from './text.js';

const NAMESPACE = 'http://www.w3.org/1998/Math/MathML';
/** Longer formulas stay as they are, and so do those that become more elements. */
const LONGEST = 2000;
const MOST = 1500;
const ATTRIBUTES = ['accent', 'accentunder', 'columnalign', 'columnlines', 'columnspacing', 'columnspan', 'depth', 'display',
  'displaystyle', 'fence', 'form', 'frame', 'height', 'largeop', 'linethickness', 'lspace', 'mathbackground', 'mathcolor',
  'mathsize', 'mathvariant', 'maxsize', 'minsize', 'movablelimits', 'notation', 'rowlines', 'rowspacing', 'rowspan', 'rspace',
  'scriptlevel', 'separator', 'stretchy', 'symmetric', 'voffset', 'width'];
const STYLES = ['color', 'backgroundColor', 'border', 'borderTop', 'borderBottom', 'fontSize', 'fontStyle', 'fontWeight', 'textAlign',
  'padding', 'paddingLeft', 'paddingRight', 'mathStyle', 'mathDepth', 'width', 'height', 'verticalAlign'];

let library;

/** A formula, which is shown as its source until it is typeset. @param {string} tex @param {boolean} display */
export function math(tex, display) {
  const at = el('code', { class: display ? 'math display' : 'math' }, tex);
  if (tex.length <= LONGEST) typeset(at, tex, display);
  return at;
}

/** Finds formulas in Markdown: $x$, $$x$$, \(x\) and \[x\]. Amounts and variables of shells are none. */
export function formulas(md) {
  md.inline.ruler.before('escape', 'math', (state, silent) => {
    if (!'$\\'.includes(state.src[state.pos])) return false;
    const [all, ...found] = INLINE.exec(state.src.slice(state.pos, state.pos + LONGEST)) ?? [];
    if (!all || (all[0] === '$' && /\w/.test(state.src[state.pos - 1] ?? ''))) return false;
    if (!silent) Object.assign(state.push('math', '', 0), { content: found.find(Boolean), meta: all.startsWith('$$') || all.startsWith('\\[') });
    state.pos += all.length;
    return true;
  });
  md.block.ruler.before('fence', 'math', (state, start, end, silent) => {
    const from = state.bMarks[start] + state.tShift[start];
    const [all, dollars, brackets] = BLOCK.exec(state.src.slice(from, Math.min(state.eMarks[end - 1], from + LONGEST))) ?? [];
    if (!all || state.sCount[start] - state.blkIndent >= 4) return false;
    const lines = all.trimEnd().split('\n').length;
    if (!silent) Object.assign(state.push('math', '', 0), { content: dollars ?? brackets, meta: true, map: [start, start + lines] });
    state.line = start + lines;
    return true;
  }, { alt: ['paragraph'] });
}

const INLINE = /^(?:\$\$([^$]+)\$\$|\\\[([^]+?)\\\]|\\\(([^]+?)\\\)|\$(?=\S)((?:[^$\\\n]|\\[^\n])+?)(?<=\S)\$(?!\w))/;
const BLOCK = /^(?:\$\$([^$]+)\$\$|\\\[([^]+?)\\\])[ \t]*(?:\n|$)/;

async function typeset(at, tex, display) {
  try {
    library ??= import('../vendor/temml.min.mjs');
    const { default: temml } = await library;
    const tree = temml.__renderToMathMLTree(tex, { displayMode: display, throwOnError: true, trust: false, maxExpand: 200, maxSize: [20, 20] });
    let left = MOST;
    const made = nodeOf(tree, () => { left -= 1; return left >= 0; });
    if (left < 0) return;
    at.replaceChildren(made);
    at.classList.add('typeset');
  } catch (no) {
    if (no.name === 'ParseError') at.title = safe(no.message);
    else library = undefined; // The connection may be lost.
  }
}

/** @param {any} node of the library's tree @param {() => boolean} more */
function nodeOf(node, more) {
  if (node.text !== undefined) return document.createTextNode(safe(node.text));
  const made = document.createElementNS(NAMESPACE, /^m[a-z]+$/.test(node.type) ? node.type : 'mrow');
  for (const [name, value] of Object.entries(node.attributes ?? {})) if (ATTRIBUTES.includes(name)) made.setAttribute(name, value);
  for (const [name, value] of Object.entries(node.style ?? {})) if (STYLES.includes(name)) made.style[name] = value;
  if (node.classes?.length) made.setAttribute('class', node.classes.filter((name) => /^tml-/.test(name)).join(' '));
  for (const child of node.children ?? []) if (more()) made.append(nodeOf(child, more));
  return made;
}

// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Draws diagrams for the page, in a frame of an origin of its own, which reaches no network. It takes texts and returns SVG.

mermaid.initialize({
  startOnLoad: false, securityLevel: 'strict', htmlLabels: false, flowchart: { htmlLabels: false }, theme: 'neutral',
  suppressErrorRendering: true, maxTextSize: 20_000, maxEdges: 300,
  // What a diagram cannot set for itself.
  secure: ['secure', 'securityLevel', 'startOnLoad', 'htmlLabels', 'flowchart', 'maxTextSize', 'maxEdges', 'suppressErrorRendering'],
});

window.addEventListener('message', async ({ data, source }) => {
  if (source !== parent) return;
  try {
    const { svg } = await mermaid.render('diagram', data);
    // It is HTML, and an image is XML.
    const made = document.createElement('div');
    made.innerHTML = svg;
    const drawn = made.firstElementChild;
    const { width, height } = drawn.viewBox.baseVal;
    drawn.setAttribute('width', width);
    drawn.setAttribute('height', height);
    parent.postMessage({ svg: new XMLSerializer().serializeToString(drawn) }, '*');
  } catch (no) {
    parent.postMessage({ error: String(no?.message ?? no) }, '*');
  }
});

// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"strings"
	"testing"

	"parley.dev/parley/test/kit/browser"
)

const drawings = "The request fails in two places:\n\n```mermaid\nflowchart LR\n" +
	"  kubectl -->|apply| api[API server] --> etcd[(etcd)]\n  api -->|watch| operator\n```\n\n" +
	"A queue of length $L = \\lambda W$ waits \\(t_i\\), and all of it\n\n$$\n" +
	"\\sum_{i=1}^{n} \\frac{t_i}{\\sqrt{n}}\n- 1\n$$\n\n" +
	"It costs $5, then $6. Set $HOME/$USER, and \\[x < y\\]."

// drawn holds once a diagram is shown and no frame is left.
const drawn = `document.querySelector('.diagram > img')?.naturalWidth > 100 && !document.querySelector('iframe')`

func TestDiagramsAndFormulasAreDrawn(t *testing.T) {
	s := newStage(t)
	s.chat("triage", user(0, "Why?"), assistant(1, text(drawings)), status("Waiting", "Answered", 2, nil))
	p := s.opened(t)
	p.Until("the diagram is drawn", drawn)
	p.Until("the formulas are typeset", `document.querySelectorAll('.typeset > math').length === 4`)
	p.Until("a fraction is part of one", "document.querySelector('.math.display mfrac msqrt')")
	p.Sees("article", "It costs $5, then $6. Set $HOME/$USER, and")
	p.Click(".diagram summary", "Source")
	p.Sees(".diagram pre", "kubectl -->|apply|")
	hasNoBarrier(p)
	pictured(p, "page-diagram", "a diagram and formulas")
}

func TestUndrawableDiagramShowsSourceAndReason(t *testing.T) {
	s := newStage(t)
	s.chat("triage", user(0, "Why?"), assistant(1,
		text("```mermaid\nflowchart LR\n  a --\n```\n\n$\\frac{a$ and $\\nonsense$")), status("Waiting", "Answered", 2, nil))
	p := s.opened(t)
	p.Sees(".code .reason", "The diagram cannot be drawn: Parse error on line")
	p.Sees(".code pre", "a --")
	p.Until("formulas stay as they are, with the reason",
		`[...document.querySelectorAll('code.math')].filter((e) => e.title && e.textContent.startsWith('\\')).length === 2`)
	hasNoBarrier(p)
}

// hostileDiagrams try to run a script, to load something and to lead elsewhere.
var hostileDiagrams = []string{
	"%%{init: {\"securityLevel\": \"loose\", \"htmlLabels\": true, \"flowchart\": {\"htmlLabels\": true}}}%%\nflowchart LR\n" +
		"  a[\"<img src=http://evil.example/p onerror=parent.hacked=1>\"] --> b[\"<script>parent.hacked=1</script>\"]\n" +
		"  click a \"javascript:parent.hacked=1\"\n  click b call hacked()",
	"---\nconfig:\n  securityLevel: loose\n" +
		"  themeCSS: \"@import 'http://evil.example/c'; *{fill:url(http://evil.example/f)}\"\n" +
		"---\nsequenceDiagram\n  participant A as <iframe src=http://evil.example/></iframe>\n" +
		"  A->>A: <svg onload=parent.hacked=1>\n  link A: x @ http://evil.example/",
	"classDiagram\n  class A~<b onclick=parent.hacked=1>~\n  click A href \"http://evil.example/\"",
}

// Security (the page): cannot be made by a diagram to run a script, load anything or lead elsewhere. Also
// TestDiagramFrameReachesNothing of internal/gateway/page.
func TestHostileDiagramsOnlyDraw(t *testing.T) {
	s := newStage(t)
	s.chat("triage", user(0, "Draw."), assistant(1,
		text("```mermaid\n"+strings.Join(hostileDiagrams, "\n```\n\n```mermaid\n")+"\n```")),
		status("Waiting", "Answered", 2, nil))
	p := s.opened(t)
	p.Until("each is drawn or has a reason", `document.querySelectorAll('.diagram > img, .reason').length === 3 &&
		!document.querySelector('iframe')`)
	t.Log(browser.Eval[string](p, `[...document.querySelectorAll('.reason')].map((e) => e.textContent).join('\n')`))
	got := browser.Eval[string](p, `JSON.stringify([window.hacked ?? 0, ...[...document.querySelectorAll('.diagram > img')]
		.flatMap((image) => decodeURIComponent(image.src).match(/<(script|iframe|img)\b|<[^>]*\s(on[a-z]+=|href="[^#])/g))
		.filter(Boolean), ...performance.getEntriesByType('resource').map((e) => e.name).filter((n) => n.includes('evil'))])`)
	if got != "[0]" {
		t.Errorf("ran, and drawn: %s", got)
	}
	if n := browser.Eval[int](p, "document.querySelectorAll('.diagram > img').length"); n == 0 {
		t.Error("nothing was drawn")
	}
}

// Security (the page): cannot be stopped by a diagram whose layout never ends.
func TestEndlessDiagramIsEnded(t *testing.T) {
	s := newStage(t)
	s.chat("triage", user(0, "Draw."), assistant(1, text("```mermaid\nflowchart LR\n  a --> b\n```")),
		status("Waiting", "Answered", 2, nil))
	s.list(summary("triage", "Waiting", "Answered", nil))
	p := browser.Open(t, browser.Start(t), s.url, `{ const real = setTimeout;
		window.setTimeout = (act, ms, ...more) => real(act, ms === 20000 ? 1000 : ms, ...more); }`)
	p.Sees("#chats a", "triage")
	p.Answer("*/ui/frame/diagram.html", "<script>addEventListener('message', () => { for (;;); })</script>")
	p.Click("#chats a", "triage")
	p.Sees(".code .reason", "it takes too long")
	p.Until("the frame has ended", "!document.querySelector('iframe')")
	p.Type("#compose", "The page works.")
}

func TestStoredImagesLoadFourAtOnce(t *testing.T) {
	const images = 12
	s := newStage(t)
	var parts []fields
	for i := range images {
		digest := fmt.Sprintf("%064x", i)
		parts = append(parts, fields{"type": "File", "file": fields{"name": "dot.png", "mediaType": "image/png",
			"stored": fields{"sha256": digest, "size": 70}}})
		s.file("GET "+chats+"/triage/files/"+digest, dot)
	}
	s.chat("triage", message(0, "User", fields{"parts": parts}), status("Waiting", "Answered", 1, nil))
	p := s.opened(t, `window.loading = window.most = 0; { const real = fetch;
		window.fetch = async (at, ...of) => {
			if (!String(at).includes('/files/')) return real(at, ...of);
			window.most = Math.max(window.most, window.loading += 1);
			await new Promise((resolve) => { setTimeout(resolve, 10); });
			return real(at, ...of).finally(() => { window.loading -= 1; }); }; }`)
	p.Until("all are shown", fmt.Sprintf("document.querySelectorAll('.file img:not([hidden])').length === %d", images))
	if most := browser.Eval[int](p, "window.most"); most > 4 {
		t.Errorf("%d were loaded at once", most)
	}
}

func TestStoredImageIsPreviewed(t *testing.T) {
	s := newStage(t)
	digest := strings.Repeat("cd", 32)
	s.chat("triage", message(0, "User", fields{"parts": []fields{
		{"type": "File", "file": fields{"name": "dot.png", "mediaType": "image/png", "stored": fields{"sha256": digest, "size": 70}}},
		{"type": "File", "file": fields{"name": "gone.png", "mediaType": "image/png", "stored": fields{"sha256": "ee", "size": 70}}},
		{"type": "File", "file": fields{"name": "a.svg", "mediaType": "image/svg+xml", "stored": fields{"sha256": "ff", "size": 70}}}}}),
		status("Waiting", "Answered", 1, nil))
	s.file("GET "+chats+"/triage/files/"+digest, dot)
	s.answer("GET "+chats+"/triage/files/ee", 404, refusal("NotFound", "the file was deleted"))
	p := s.opened(t)
	p.Until("the image is shown", "document.querySelector('.file img:not([hidden])')?.naturalWidth === 1")
	p.Sees("figcaption", "dot.png")
	p.Sees("figure", "There is no preview: the file was deleted")
	p.Sees("p.file", "a.svg, image/svg+xml")
	if s.times("GET "+chats+"/triage/files/ff") != 0 {
		t.Error("an image that may have scripts was loaded")
	}
}

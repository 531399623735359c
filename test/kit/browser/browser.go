// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package browser drives a real browser in tests, without a window: Debian's Chromium, or its Firefox if PAGE_BROWSER
// says so. It holds every page to its word that nothing breaks its Content-Security-Policy and no script fails.
package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience is how long a condition is waited for.
const patience = 60 * time.Second

// defaultWidth and defaultHeight are the size of a window.
const defaultWidth, defaultHeight = 1280, 860

// engine drives browsers of a kind.
type engine interface {
	// open opens a tab with storage of its own. heard is called with what its page does wrong.
	open(ctx context.Context, heard func(string), scripts []string) (tab, error)
}

// tab is a tab of a browser. What its browser cannot do fails with errors.ErrUnsupported.
type tab interface {
	navigate(ctx context.Context, url string) error
	reload(ctx context.Context) error
	// evaluate evaluates JavaScript, waits for the promise that it may be, and returns the value in JSON.
	evaluate(ctx context.Context, script string) ([]byte, error)
	// insert types a text at once.
	insert(ctx context.Context, text string) error
	// press presses a key, while another one is held; empty: none.
	press(ctx context.Context, held, key string) error
	look(ctx context.Context, scheme string, width, height int64) error
	picture(ctx context.Context) ([]byte, error)
	answer(ctx context.Context, pattern, document string) error
	end()
}

// Browser is one that runs.
type Browser struct{ engine engine }

type options struct{ anyCertificate bool }

// AnyCertificate is an option of Start: the browser accepts every certificate.
func AnyCertificate(o *options) { o.anyCertificate = true }

// Start starts a browser that ends with the test. Without options it is the one that Share shares.
func Start(t testing.TB, more ...func(*options)) *Browser {
	t.Helper()
	if shared != nil && len(more) == 0 {
		return shared.browserOf(t)
	}
	return start(t, more)
}

func start(t testing.TB, more []func(*options)) *Browser {
	t.Helper()
	var o options
	for _, set := range more {
		set(&o)
	}
	if os.Getenv("PAGE_BROWSER") == "firefox" {
		return &Browser{startFirefox(t)}
	}
	return &Browser{startChromium(t, o)}
}

// Page is a tab.
type Page struct {
	t   testing.TB
	tab tab

	mu      sync.Mutex
	trouble []string
}

// violations are collected by the page itself, before any script of its own runs.
const violations = `window.violations = [];
document.addEventListener('securitypolicyviolation', (e) => {
  window.violations.push(e.violatedDirective + ' ' + e.blockedURI + ' ' + e.sample);
});`

// At lets the clock of a page stand still, so that pictures of it do not change.
func At(now time.Time) string {
	return fmt.Sprintf(`{ const Real = Date, now = %d;
		globalThis.Date = class extends Real { constructor(...of) { super(...(of.length ? of : [now])); } };
		Date.now = () => now; }`, now.UnixMilli())
}

// Open opens a URL in a tab of its own, with storage of its own. Scripts run before those of the page. Nothing of the
// page may have failed when the test ends.
func Open(t testing.TB, browser *Browser, url string, scripts ...string) *Page {
	t.Helper()
	p := &Page{t: t}
	p.within(func(ctx context.Context) (err error) {
		p.tab, err = browser.engine.open(ctx, p.heard, append(scripts, violations))
		return err
	})
	t.Cleanup(p.tab.end)
	p.within(func(ctx context.Context) error { return p.tab.navigate(ctx, url) })
	t.Cleanup(p.check)
	return p
}

// heard keeps what the browser has against the page.
func (p *Page) heard(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trouble = append(p.trouble, what)
}

// within has the browser do something, which must succeed in time. What it cannot do at all, the test skips.
func (p *Page) within(do func(context.Context) error) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err := do(ctx)
	if errors.Is(err, errors.ErrUnsupported) {
		p.t.Skip("this browser cannot do that")
	}
	if err != nil {
		p.t.Fatalf("driving the page: %v", err)
	}
}

// Answer lets the browser answer requests for addresses of a pattern with a document, in place of the server.
func (p *Page) Answer(pattern, document string) {
	p.t.Helper()
	p.within(func(ctx context.Context) error { return p.tab.answer(ctx, pattern, document) })
}

// check fails the test for all that the browser had against the page.
func (p *Page) check() {
	if p.t.Failed() {
		if dir := os.Getenv("PAGE_FAILURES"); dir != "" {
			_ = p.picture(filepath.Join(dir, strings.ReplaceAll(p.t.Name(), "/", "-")+".png"))
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	broken, err := p.tab.evaluate(ctx, "window.violations")
	if err != nil || string(broken) != "[]" {
		p.t.Errorf("the page breaks its policy: %s, %v", broken, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.trouble) > 0 {
		p.t.Errorf("the page fails: %v", p.trouble)
	}
}

// Of lets failures from now on be those of a subtest, as long as it runs.
func (p *Page) Of(t *testing.T) {
	whole := p.t
	p.t = t
	t.Cleanup(func() { p.t = whole })
}

// Eval evaluates JavaScript, as the tools of developers do, and waits for the promise that it may be.
func Eval[T any](p *Page, script string) T {
	p.t.Helper()
	raw := p.evaluate(script)
	var out T
	if err := json.Unmarshal(raw, &out); err != nil {
		p.t.Fatalf("decoding %.200s of %.200s: %v", raw, script, err)
	}
	return out
}

func (p *Page) evaluate(script string) (raw []byte) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	raw, err := p.tab.evaluate(ctx, script)
	if err != nil {
		p.t.Fatalf("evaluating %.200s: %v", script, err)
	}
	return raw
}

// Do runs JavaScript.
func (p *Page) Do(script string) {
	p.t.Helper()
	p.evaluate(script)
}

// Until waits until a JavaScript expression holds.
func (p *Page) Until(what, expression string) {
	p.t.Helper()
	p.Within(patience, what, expression)
}

// Within is Until for what takes long.
func (p *Page) Within(limit time.Duration, what, expression string) {
	p.t.Helper()
	deadline := time.After(limit)
	for {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		holds, err := p.tab.evaluate(ctx, "Boolean("+expression+")")
		cancel()
		if err == nil && string(holds) == "true" {
			return
		}
		select {
		case <-deadline:
			p.t.Fatalf("timeout: waited until %s: %v\n%s", what, err, Eval[string](p, "document.body.innerText"))
		case <-time.After(30 * time.Millisecond):
		}
	}
}

// Sees waits until an element that a selector finds shows the words.
func (p *Page) Sees(selector, words string) {
	p.t.Helper()
	p.Until(fmt.Sprintf("%s shows %q", selector, words), fmt.Sprintf(
		"[...document.querySelectorAll(%s)].some((e) => e.checkVisibility() && e.innerText.includes(%s))",
		jsonString(selector), jsonString(words)))
}

// Gone waits until nothing that a selector finds shows the words.
func (p *Page) Gone(selector, words string) {
	p.t.Helper()
	p.Until(fmt.Sprintf("%s shows %q no more", selector, words), fmt.Sprintf(
		"![...document.querySelectorAll(%s)].some((e) => e.checkVisibility() && e.innerText.includes(%s))",
		jsonString(selector), jsonString(words)))
}

// Click clicks the first element that a selector finds and that shows the words, as soon as there is one.
func (p *Page) Click(selector, words string) {
	p.t.Helper()
	p.Sees(selector, words)
	p.Do(fmt.Sprintf(`[...document.querySelectorAll(%s)]
		.find((e) => e.checkVisibility() && e.innerText.includes(%s)).click()`,
		jsonString(selector), jsonString(words)))
}

// Type types into the field that a selector finds, after what is in it.
func (p *Page) Type(selector, text string) {
	p.t.Helper()
	p.Until("there is "+selector, "document.querySelector("+jsonString(selector)+")?.checkVisibility()")
	p.Do("document.querySelector(" + jsonString(selector) + ").focus()")
	p.Write(text)
}

// Clear empties a field.
func (p *Page) Clear(selector string) {
	p.t.Helper()
	p.Until("there is "+selector, "document.querySelector("+jsonString(selector)+")")
	p.Do("{ const e = document.querySelector(" + jsonString(selector) +
		"); e.value = ''; e.dispatchEvent(new Event('input')); }")
}

// Reload loads the page again.
func (p *Page) Reload() {
	p.t.Helper()
	p.within(p.tab.reload)
}

// Look sets the colour scheme ("light" or "dark") and the size of the window, and lets nothing move.
func (p *Page) Look(scheme string, width, height int64) {
	p.t.Helper()
	p.within(func(ctx context.Context) error { return p.tab.look(ctx, scheme, width, height) })
}

// Picture writes what the window shows to a file.
func (p *Page) Picture(path string) {
	p.t.Helper()
	if err := p.picture(path); err != nil {
		p.t.Fatal(err)
	}
}

func (p *Page) picture(path string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	png, err := p.tab.picture(ctx)
	if err != nil {
		return fmt.Errorf("taking a picture: %w", err)
	}
	return os.WriteFile(path, png, 0o644)
}

// Barrier is what axe has against an element.
type Barrier struct {
	ID    string `json:"id"`
	Help  string `json:"help"`
	Nodes []struct {
		HTML    string `json:"html"`
		Summary string `json:"failureSummary"`
	} `json:"nodes"`
}

// HasNoBarrier fails the test for what axe, whose script is in a file, has against the page as it stands.
func (p *Page) HasNoBarrier(script string) {
	p.t.Helper()
	for _, barrier := range p.Barriers(script) {
		p.t.Errorf("%+v", barrier)
	}
}

// Barriers lets axe, whose script is in a file, look at the page as it stands.
func (p *Page) Barriers(script string) []Barrier {
	p.t.Helper()
	source, err := os.ReadFile(script)
	if err != nil {
		p.t.Fatalf("reading axe: %v: run make axe", err)
	}
	// It does not go through the page, whose policy would refuse it.
	p.Do(string(source) + "; undefined")
	return Eval[[]Barrier](p, `axe.run(document, {resultTypes: ['violations']}).then((r) => r.violations.map((v) => ({
		id: v.id, help: v.help, nodes: v.nodes.slice(0, 3).map((n) => ({html: n.html,
			failureSummary: n.failureSummary}))})))`)
}

func jsonString(text string) string {
	raw, _ := json.Marshal(text) // A string can always be encoded.
	return string(raw)
}

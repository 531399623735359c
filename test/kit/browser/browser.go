// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package browser drives a real browser in tests: Debian's Chromium, without a window. It holds every page to its word
// that nothing breaks its Content-Security-Policy and no script fails.
package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	cdpage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// patience is how long a condition is waited for.
const patience = 60 * time.Second

// Browser is one that runs.
type Browser struct{ ctx context.Context }

// Start starts a browser that ends with the test, with more options.
func Start(t testing.TB, more ...chromedp.ExecAllocatorOption) *Browser {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatal("there is no chromium: run hack/setup.sh")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.WindowSize(1280, 860),
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("lang", "en-GB"))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium has none for root.
	}
	allocated, end := chromedp.NewExecAllocator(context.Background(), append(options, more...)...)
	t.Cleanup(end)
	ctx, cancel := chromedp.NewContext(allocated)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("starting chromium: %v", err)
	}
	return &Browser{ctx}
}

// Page is a tab.
type Page struct {
	t   testing.TB
	ctx context.Context

	mu      sync.Mutex
	trouble []string
	// document is the answer to requests that the browser answers.
	document string
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
// page
// may have failed when the test ends.
func Open(t testing.TB, browser *Browser, url string, scripts ...string) *Page {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser.ctx, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	p := &Page{t: t, ctx: ctx}
	if err := chromedp.Listen(ctx, p.heard); err != nil {
		t.Fatalf("opening a tab: %v", err)
	}
	must := func(_ any, err error) {
		if err != nil {
			t.Fatalf("preparing a tab: %v", err)
		}
	}
	must(chromedp.Call(ctx, log.Enable, cdp.Empty{}))
	must(chromedp.Call(ctx, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "UTC"}))
	must(chromedp.Call(ctx, emulation.SetLocaleOverride, emulation.SetLocaleOverrideParams{Locale: "en-GB"}))
	for _, script := range append(scripts, violations) {
		must(chromedp.Call(ctx, cdpage.AddScriptToEvaluateOnNewDocument,
			cdpage.AddScriptToEvaluateOnNewDocumentParams{Source: script}))
	}
	p.run(chromedp.Navigate(url))
	t.Cleanup(p.check)
	return p
}

// heard keeps what the browser has against the page.
func (p *Page) heard(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		p.trouble = append(p.trouble, (&chromedp.ExceptionError{ExceptionDetails: e.ExceptionDetails}).Error())
	case *cdpage.EventJavascriptDialogOpening: // Whether to leave a page with something unsent: yes.
		go func() {
			_, _ = chromedp.Call(p.ctx, cdpage.HandleJavaScriptDialog, cdpage.HandleJavaScriptDialogParams{Accept: true})
		}()
	case *fetch.EventRequestPaused:
		go func(document string) {
			_, _ = chromedp.Call(p.ctx, fetch.FulfillRequest, fetch.FulfillRequestParams{RequestID: e.RequestID,
				ResponseCode: 200, ResponseHeaders: []*fetch.HeaderEntry{{Name: "Content-Type", Value: "text/html"}},
				Body: []byte(document)})
		}(p.document)
	case *log.EventEntryAdded:
		// Streams are lost and requests refused on purpose; what breaks a policy is not.
		if e.Entry.Level == log.EntryLevelError && e.Entry.Source != log.EntrySourceNetwork {
			p.trouble = append(p.trouble, e.Entry.Text)
		}
	}
}

// Answer lets the browser answer requests for addresses of a pattern with a document, in place of the server.
func (p *Page) Answer(pattern, document string) {
	p.t.Helper()
	p.mu.Lock()
	p.document = document
	p.mu.Unlock()
	_, err := chromedp.Call(p.ctx, fetch.Enable,
		fetch.EnableParams{Patterns: []*fetch.RequestPattern{{URLPattern: pattern}}})
	if err != nil {
		p.t.Fatalf("answering requests: %v", err)
	}
}

// check fails the test for all that the browser had against the page.
func (p *Page) check() {
	if p.t.Failed() {
		if dir := os.Getenv("PAGE_FAILURES"); dir != "" {
			_ = p.picture(filepath.Join(dir, strings.ReplaceAll(p.t.Name(), "/", "-")+".png"))
		}
	}
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	broken, err := chromedp.Run(ctx, chromedp.Evaluate[[]string]("window.violations"))
	if err != nil || len(broken) > 0 {
		p.t.Errorf("the page breaks its policy: %v, %v", broken, err)
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

func (p *Page) run(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		p.t.Fatalf("driving the page: %v", err)
	}
}

// Eval evaluates JavaScript, as the tools of developers do, and waits for the promise that it may be.
func Eval[T any](p *Page, script string) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	out, err := chromedp.Run(ctx, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatalf("evaluating %.200s: %v", script, err)
	}
	return out
}

// Do runs JavaScript.
func (p *Page) Do(script string) {
	p.t.Helper()
	Eval[chromedp.Void](p, script)
}

// Until waits until a JavaScript expression holds.
func (p *Page) Until(what, expression string) {
	p.t.Helper()
	deadline := time.After(patience)
	for {
		ctx, cancel := context.WithTimeout(p.ctx, patience)
		holds, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("Boolean("+expression+")"))
		cancel()
		if err == nil && holds {
			return
		}
		select {
		case <-deadline:
			text, _ := chromedp.Run(p.ctx, chromedp.Evaluate[string]("document.body.innerText"))
			p.t.Fatalf("waited in vain until %s: %v\n%s", what, err, text)
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
	if _, err := chromedp.Call(p.ctx, input.InsertText, input.InsertTextParams{Text: text}); err != nil {
		p.t.Fatalf("typing: %v", err)
	}
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
	p.run(chromedp.Reload())
}

// Look sets the colour scheme ("light" or "dark") and the size of the window, and lets nothing move.
func (p *Page) Look(scheme string, width, height int64) {
	p.t.Helper()
	_, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme},
			{Name: "prefers-reduced-motion", Value: "reduce"}}})
	if err != nil {
		p.t.Fatalf("setting the colour scheme: %v", err)
	}
	p.run(chromedp.EmulateViewport(width, height))
}

// Picture writes what the window shows to a file.
func (p *Page) Picture(path string) {
	p.t.Helper()
	if err := p.picture(path); err != nil {
		p.t.Fatal(err)
	}
}

func (p *Page) picture(path string) error {
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
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

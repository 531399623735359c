// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	cdpage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// chromium is a Chromium that is driven by its own protocol.
type chromium struct{ ctx context.Context }

func startChromium(t testing.TB, o options) *chromium {
	t.Helper()
	// The shell takes a quarter less time: it has no windows.
	path, err := exec.LookPath("chromium-headless-shell")
	if err != nil {
		path, err = exec.LookPath("chromium")
	}
	if err != nil {
		t.Fatal("there is no chromium-headless-shell or chromium: run hack/setup.sh")
	}
	flags := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path),
		chromedp.WindowSize(defaultWidth, defaultHeight), chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.Flag("lang", "en-GB"),
		// As on a desktop, a frame of another origin cannot hold up the page: the shell would run both in one process.
		chromedp.Flag("site-per-process", true),
		// Without these, it computes the work of a graphics card: an eighth more time.
		chromedp.Flag("disable-gpu", true), chromedp.Flag("disable-software-rasterizer", true))
	if os.Geteuid() == 0 {
		flags = append(flags, chromedp.NoSandbox) // Chromium has none for root.
	}
	if o.anyCertificate {
		flags = append(flags, chromedp.IgnoreCertErrors)
	}
	// A browser that is killed leaves files in the folder for temporary files.
	temporary, err := os.MkdirTemp("", "chromium-") //nolint:usetesting // Its children may still write: that fails then.
	if err != nil {
		t.Fatalf("making a folder for chromium: %v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(temporary) })
	flags = append(flags, chromedp.Env("TMPDIR="+temporary))
	allocated, end := chromedp.NewExecAllocator(context.Background(), flags...)
	t.Cleanup(end)
	ctx, cancel := chromedp.NewContext(allocated)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("starting chromium: %v", err)
	}
	return &chromium{ctx}
}

// chromiumTab is a tab of Chromium.
type chromiumTab struct {
	ctx    context.Context
	cancel func()
	heard  func(string)

	mu sync.Mutex
	// document is the answer to requests that the browser answers.
	document string
}

func (c *chromium) open(_ context.Context, heard func(string), scripts []string) (tab, error) {
	return c.newTab(heard, scripts) //nolint:contextcheck // A tab lives as long as its browser.
}

func (c *chromium) newTab(heard func(string), scripts []string) (*chromiumTab, error) {
	ctx, cancel := chromedp.NewContext(c.ctx, chromedp.WithNewBrowserContext())
	t := &chromiumTab{ctx: ctx, cancel: cancel, heard: heard}
	err := chromedp.Listen(ctx, t.hear)
	prepare := func(_ any, wrong error) {
		if err == nil {
			err = wrong
		}
	}
	prepare(chromedp.Call(ctx, log.Enable, cdp.Empty{}))
	prepare(chromedp.Call(ctx, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "UTC"}))
	prepare(chromedp.Call(ctx, emulation.SetLocaleOverride, emulation.SetLocaleOverrideParams{Locale: "en-GB"}))
	for _, script := range scripts {
		prepare(chromedp.Call(ctx, cdpage.AddScriptToEvaluateOnNewDocument,
			cdpage.AddScriptToEvaluateOnNewDocumentParams{Source: script}))
	}
	return t, err
}

// hear passes on what the browser has against the page.
func (t *chromiumTab) hear(event any) {
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		t.heard((&chromedp.ExceptionError{ExceptionDetails: e.ExceptionDetails}).Error())
	case *cdpage.EventJavascriptDialogOpening: // Whether to leave a page with something unsent: yes.
		go func() {
			_, _ = chromedp.Call(t.ctx, cdpage.HandleJavaScriptDialog, cdpage.HandleJavaScriptDialogParams{Accept: true})
		}()
	case *fetch.EventRequestPaused:
		t.mu.Lock()
		document := t.document
		t.mu.Unlock()
		go func() {
			_, _ = chromedp.Call(t.ctx, fetch.FulfillRequest, fetch.FulfillRequestParams{RequestID: e.RequestID,
				ResponseCode: 200, ResponseHeaders: []*fetch.HeaderEntry{{Name: "Content-Type", Value: "text/html"}},
				Body: []byte(document)})
		}()
	case *log.EventEntryAdded:
		// Streams are lost and requests refused on purpose; what breaks a policy is not.
		if e.Entry.Level == log.EntryLevelError && e.Entry.Source != log.EntrySourceNetwork {
			t.heard(e.Entry.Text)
		}
	}
}

// within is the context of the tab, for as long as the other one lasts.
func (t *chromiumTab) within(ctx context.Context) (context.Context, func()) {
	of, cancel := context.WithCancel(t.ctx)
	stop := context.AfterFunc(ctx, cancel)
	return of, func() { stop(); cancel() }
}

// call runs a command of the protocol in the tab.
func call[P, R any](ctx context.Context, t *chromiumTab, command cdp.Command[P, R], params P) error {
	of, end := t.within(ctx)
	defer end()
	_, err := chromedp.Call(of, command, params)
	return err
}

func (t *chromiumTab) run(ctx context.Context, action chromedp.Action[chromedp.Void]) error {
	of, end := t.within(ctx)
	defer end()
	return chromedp.Do(of, action)
}

func (t *chromiumTab) navigate(ctx context.Context, url string) error {
	return t.run(ctx, chromedp.Navigate(url))
}

func (t *chromiumTab) reload(ctx context.Context) error { return t.run(ctx, chromedp.Reload()) }

func (t *chromiumTab) evaluate(ctx context.Context, script string) ([]byte, error) {
	of, end := t.within(ctx)
	defer end()
	return chromedp.Run(of, chromedp.Evaluate[[]byte](script, chromedp.EvalAwaitPromise))
}

func (t *chromiumTab) insert(ctx context.Context, text string) error {
	return call(ctx, t, input.InsertText, input.InsertTextParams{Text: text})
}

// chromiumKeys are those that need more than their character.
var chromiumKeys = map[string]struct {
	text string
	code int64
}{
	"Enter": {"\r", 13}, "Escape": {"", 27}, "Tab": {"", 9}, "Space": {" ", 32},
	"ArrowDown": {"", 40}, "ArrowUp": {"", 38}, "End": {"", 35},
}

func (t *chromiumTab) press(ctx context.Context, held, key string) error {
	params := input.DispatchKeyEventParams{Modifiers: modifiers[held]}
	known, ok := chromiumKeys[key]
	if !ok {
		known.text = key
	}
	params.Key, params.WindowsVirtualKeyCode = key, known.code
	if key == "Space" {
		params.Key = " "
	}
	for _, kind := range []input.DispatchKeyEventType{input.DispatchKeyEventTypeKeyDown,
		input.DispatchKeyEventTypeKeyUp} {
		params.Type, params.Text = kind, ""
		if kind == input.DispatchKeyEventTypeKeyDown {
			params.Text = known.text
		}
		if err := call(ctx, t, input.DispatchKeyEvent, params); err != nil {
			return err
		}
	}
	return nil
}

func (t *chromiumTab) look(ctx context.Context, scheme string, width, height int64) error {
	err := call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme},
			{Name: "prefers-reduced-motion", Value: "reduce"}}})
	if err != nil {
		return fmt.Errorf("setting the colour scheme: %w", err)
	}
	return t.run(ctx, chromedp.EmulateViewport(width, height))
}

func (t *chromiumTab) picture(ctx context.Context) ([]byte, error) {
	of, end := t.within(ctx)
	defer end()
	return chromedp.Run(of, chromedp.CaptureScreenshot())
}

func (t *chromiumTab) end() { t.cancel() }

func (t *chromiumTab) answer(ctx context.Context, pattern, document string) error {
	t.mu.Lock()
	t.document = document
	t.mu.Unlock()
	return call(ctx, t, fetch.Enable, fetch.EnableParams{Patterns: []*fetch.RequestPattern{{URLPattern: pattern}}})
}

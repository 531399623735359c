// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/gorilla/websocket"
)

// firefox is a Firefox that is driven by WebDriver BiDi.
type firefox struct {
	conn *websocket.Conn

	mu      sync.Mutex
	last    int
	waiting map[int]chan<- reply
	// tabs hear what their pages do wrong.
	tabs map[string]func(string)
	lost error
}

// reply is what the browser sends: the answer to a command, or an event.
type reply struct {
	ID      int             `json:"id"`
	Type    string          `json:"type"`
	Method  string          `json:"method"`
	Error   string          `json:"error"`
	Message string          `json:"message"`
	Result  json.RawMessage `json:"result"`
	Params  struct {
		Level  string `json:"level"`
		Type   string `json:"type"`
		Text   string `json:"text"`
		Source struct {
			Context string `json:"context"`
		} `json:"source"`
		// Context is that of a prompt.
		Context string `json:"context"`
	} `json:"params"`
}

// firefoxSettings keep the browser from all that no test asks for.
const firefoxSettings = `user_pref("intl.accept_languages", "en-GB");
user_pref("intl.locale.requested", "en-GB");
user_pref("ui.prefersReducedMotion", 1);
user_pref("browser.shell.checkDefaultBrowser", false);
`

func startFirefox(t testing.TB) *firefox {
	t.Helper()
	profile := t.TempDir()
	if err := os.WriteFile(filepath.Join(profile, "user.js"), []byte(firefoxSettings), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(context.Background())
	program := exec.CommandContext(ctx, "firefox-esr", "--headless", "--no-remote", "--profile", profile,
		"--remote-debugging-port", "0")
	program.Env = append(os.Environ(), "HOME="+profile, "TZ=UTC")
	out, err := program.StderrPipe()
	if err == nil {
		err = program.Start()
	}
	if err != nil {
		end()
		t.Fatalf("starting firefox-esr: %v: install Debian's package", err)
	}
	t.Cleanup(func() { end(); _ = program.Wait() })
	address, err := addressIn(out)
	if err != nil {
		t.Fatal(err)
	}
	conn, answer, err := websocket.DefaultDialer.DialContext(ctx, address+"/session", nil)
	if err != nil {
		t.Fatalf("connecting to Firefox: %v", err)
	}
	_ = answer.Body.Close()
	f := &firefox{conn: conn, waiting: map[int]chan<- reply{}, tabs: map[string]func(string){}}
	var reading sync.WaitGroup
	reading.Go(f.read)
	t.Cleanup(func() { _ = conn.Close(); reading.Wait() })
	err = f.call(t.Context(), "session.new", object{"capabilities": object{"alwaysMatch": object{
		"acceptInsecureCerts": true, "unhandledPromptBehavior": object{"default": "ignore"}}}}, nil)
	if err == nil {
		err = f.call(t.Context(), "session.subscribe", object{"events": []string{"log.entryAdded",
			"browsingContext.userPromptOpened"}}, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// addressIn waits until the browser says where it listens. What it says later is read and dropped.
func addressIn(out io.Reader) (string, error) {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if _, address, ok := strings.Cut(lines.Text(), "WebDriver BiDi listening on "); ok {
			go func() { _, _ = io.Copy(io.Discard, out) }() // It ends with the program.
			return address, nil
		}
	}
	return "", fmt.Errorf("starting Firefox: it ended before it listened: %w",
		errors.Join(lines.Err(), io.ErrUnexpectedEOF))
}

type object = map[string]any

// read passes on what the browser sends, until the connection ends.
func (f *firefox) read() {
	var answers sync.WaitGroup
	defer answers.Wait()
	for {
		var r reply
		err := f.conn.ReadJSON(&r)
		f.mu.Lock()
		if err != nil {
			f.lost = fmt.Errorf("reading from Firefox: %w", err)
			for id, wait := range f.waiting {
				close(wait)
				delete(f.waiting, id)
			}
			f.mu.Unlock()
			return
		}
		if wait := f.waiting[r.ID]; wait != nil && r.Type != "event" {
			delete(f.waiting, r.ID)
			wait <- r
		}
		heard := f.tabs[r.Params.Source.Context]
		f.mu.Unlock()
		if r.Method == "browsingContext.userPromptOpened" { // Whether to leave a page with something unsent: yes.
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			answers.Go(func() {
				defer cancel()
				_ = f.call(ctx, "browsingContext.handleUserPrompt", object{"context": r.Params.Context, "accept": true}, nil)
			})
		}
		if r.Method == "log.entryAdded" && r.Params.Type == "javascript" && r.Params.Level == "error" && heard != nil {
			heard(r.Params.Text)
		}
	}
}

// call has the browser run a command, and decodes its result.
func (f *firefox) call(ctx context.Context, method string, params, into any) error {
	answered := make(chan reply, 1)
	f.mu.Lock()
	f.last++
	err := f.lost
	if err == nil {
		f.waiting[f.last] = answered
		err = f.conn.WriteJSON(object{"id": f.last, "method": method, "params": params})
	}
	f.mu.Unlock()
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	select {
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", method, ctx.Err())
	case r, ok := <-answered:
		switch {
		case !ok:
			return fmt.Errorf("%s: the connection to Firefox ended", method)
		case r.Type == "error":
			return fmt.Errorf("%s: %s: %s", method, r.Error, r.Message)
		case into == nil:
			return nil
		}
		return json.Unmarshal(r.Result, into)
	}
}

func (f *firefox) open(ctx context.Context, heard func(string), scripts []string) (tab, error) {
	var made struct{ UserContext, Context string }
	if err := f.call(ctx, "browser.createUserContext", object{}, &made); err != nil {
		return nil, err
	}
	if err := f.call(ctx, "browsingContext.create", object{"type": "tab", "userContext": made.UserContext},
		&made); err != nil {
		return nil, err
	}
	f.mu.Lock()
	f.tabs[made.Context] = heard
	f.mu.Unlock()
	for _, script := range scripts {
		if err := f.call(ctx, "script.addPreloadScript", object{"contexts": []string{made.Context},
			"functionDeclaration": "() => {" + script + "\n}"}, nil); err != nil {
			return nil, err
		}
	}
	of := &firefoxTab{f, made.Context, made.UserContext}
	return of, of.look(ctx, "light", defaultWidth, defaultHeight)
}

// firefoxTab is a tab of Firefox.
type firefoxTab struct {
	*firefox

	context, userContext string
}

func (t *firefoxTab) end() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_ = t.call(ctx, "browser.removeUserContext", object{"userContext": t.userContext}, nil) // The browser ends, too.
}

func (t *firefoxTab) navigate(ctx context.Context, url string) error {
	return t.call(ctx, "browsingContext.navigate", object{"context": t.context, "url": url, "wait": "complete"}, nil)
}

func (t *firefoxTab) reload(ctx context.Context) error {
	return t.call(ctx, "browsingContext.reload", object{"context": t.context, "wait": "complete"}, nil)
}

// remoteValue is a value of JavaScript.
type remoteValue struct {
	Type  string          `json:"type"`
	Value json.RawMessage `json:"value"`
}

func (t *firefoxTab) evaluate(ctx context.Context, script string) ([]byte, error) {
	var got struct {
		Type             string
		Result           remoteValue
		ExceptionDetails struct{ Text string }
	}
	err := t.call(ctx, "script.evaluate", object{"expression": script, "target": object{"context": t.context},
		"awaitPromise": true}, &got)
	switch {
	case err != nil:
		return nil, err
	case got.Type == "exception":
		return nil, errors.New(got.ExceptionDetails.Text)
	}
	value, err := got.Result.plain()
	if err != nil {
		return nil, err
	}
	return json.Marshal(value)
}

// plain is the value as JSON has it.
func (v remoteValue) plain() (any, error) {
	switch v.Type {
	case "array":
		var items []remoteValue
		if err := json.Unmarshal(v.Value, &items); err != nil {
			return nil, fmt.Errorf("decoding an array: %w", err)
		}
		all := make([]any, len(items))
		for i := range items {
			var err error
			if all[i], err = items[i].plain(); err != nil {
				return nil, err
			}
		}
		return all, nil
	case "object":
		return v.fields()
	case "string", "number", "boolean":
		return v.Value, nil
	}
	return nil, nil
}

func (v remoteValue) fields() (any, error) {
	var pairs [][2]json.RawMessage
	if err := json.Unmarshal(v.Value, &pairs); err != nil {
		return nil, fmt.Errorf("decoding an object: %w", err)
	}
	all := object{}
	for _, pair := range pairs {
		var key string
		var value remoteValue
		if err := errors.Join(json.Unmarshal(pair[0], &key), json.Unmarshal(pair[1], &value)); err != nil {
			return nil, fmt.Errorf("decoding a field: %w", err)
		}
		var err error
		if all[key], err = value.plain(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// insert types a text at once, as a paste does.
func (t *firefoxTab) insert(ctx context.Context, text string) error {
	_, err := t.evaluate(ctx, "document.execCommand('insertText', false, "+jsonString(text)+")")
	return err
}

// firefoxKeys are the names of keys in WebDriver.
var firefoxKeys = map[string]string{"Enter": "\ue007", "Escape": "\ue00c", "Tab": "\ue004", "Space": " ",
	"ArrowDown": "\ue015", "ArrowUp": "\ue013", "End": "\ue010", "Alt": "\ue00a", "Control": "\ue009", "Shift": "\ue008"}

func (t *firefoxTab) press(ctx context.Context, held, key string) error {
	var down, up []object
	for _, name := range []string{held, key} {
		if name == "" {
			continue
		}
		value, ok := firefoxKeys[name]
		if !ok {
			value = name
		}
		down = append(down, object{"type": "keyDown", "value": value})
		up = append([]object{{"type": "keyUp", "value": value}}, up...)
	}
	return t.call(ctx, "input.performActions", object{"context": t.context, "actions": []object{
		{"type": "key", "id": "keyboard", "actions": append(down, up...)}}}, nil)
}

// look sets the size alone: this version's WebDriver BiDi has no colour schemes.
func (t *firefoxTab) look(ctx context.Context, _ string, width, height int64) error {
	return t.call(ctx, "browsingContext.setViewport", object{"context": t.context,
		"viewport": object{"width": width, "height": height}}, nil)
}

func (t *firefoxTab) picture(ctx context.Context) ([]byte, error) {
	var got struct{ Data string }
	if err := t.call(ctx, "browsingContext.captureScreenshot", object{"context": t.context}, &got); err != nil {
		return nil, err
	}
	return base64.StdEncoding.DecodeString(got.Data)
}

func (*firefoxTab) answer(context.Context, string, string) error { return errors.ErrUnsupported }

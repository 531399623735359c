// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
	"testing"

	"parley.dev/parley/test/kit/browser"
)

// gives lets a file come by an event, as it does from a desktop.
func gives(p *browser.Page, event, file string) {
	p.Do(`{ const given = new DataTransfer(); given.items.add(` + file + `);
		document.getElementById('compose').dispatchEvent(` + event + `); }`)
}

const (
	dropped = "new DragEvent('drop', {dataTransfer: given, bubbles: true, cancelable: true})"
	// Firefox takes no clipboardData from scripts.
	pasted = "Object.defineProperty(new Event('paste', {bubbles: true, cancelable: true}), 'clipboardData', " +
		"{value: given})"
)

func TestFilesComeByDropAndPaste(t *testing.T) {
	s, p := idle(t)
	gives(p, dropped, "new File(['log'], 'a/b.log', {type: 'text/plain'})")
	p.Sees("#files", "b.log")
	gives(p, pasted, "new File([Uint8Array.from(atob('"+dot+
		"'), (c) => c.charCodeAt(0))], 'dot.png', {type: 'image/png'})")
	p.Until("the image is shown", "document.querySelector('#files img')?.naturalWidth === 1")
	for file, why := range map[string]string{
		"new File([new Uint8Array(3670017)], 'big.bin')": "big.bin was not attached: it has 3585 KiB, and a file has at " +
			"most 3584 KiB",
		"new File([], 'none.txt')": "none.txt was not attached: it is empty",
	} {
		gives(p, dropped, file)
		p.Sees(".toast", why)
	}
	gives(p, dropped, "new File([new Uint8Array(537600)], 'most.bin')")
	p.Sees("#files", "most.bin")
	p.Click("#files button[aria-label='Remove most.bin']", "Remove")
	p.Type("#compose", "Look.")
	s.answer(sends, http.StatusForbidden, refusal("Forbidden", "you may not write here"))
	p.Key("Enter")
	p.Sees(".toast", "you may not write here")
	p.Sees("#files", "dot.png")
	s.answer(sends, http.StatusOK, fields{})
	p.Type("#compose", "!")
	p.Key("Enter")
	p.Until("the files have left", "!document.querySelector('#files li')")
	waitFor(t, "the message is sent", func() bool {
		parts, _ := s.wasAsked(sends)["parts"].([]any)
		return len(parts) == 3 && encoded(parts[0]) == `{"text":"Look.!","type":"Text"}` && encoded(parts[1]) ==
			`{"file":{"data":"bG9n","mediaType":"text/plain","name":"a_b.log"},"type":"File"}` &&
			strings.Contains(encoded(parts[2]), dot)
	})
}

func TestFilesTooLargeForMessageAreUploaded(t *testing.T) {
	s, p := idle(t)
	sum := sha256.Sum256(make([]byte, 537601))
	digest := hex.EncodeToString(sum[:])
	upload := "PUT " + chats + "/triage/files/" + digest
	s.answer(upload, http.StatusForbidden, refusal("StoredFilesExceeded", "the quota allows no more"))
	gives(p, dropped, "new File([new Uint8Array(537601)], 'large.bin')")
	p.Sees(".toast", "large.bin was not attached: the quota allows no more")
	s.answer(upload, http.StatusNoContent, nil)
	gives(p, dropped, "new File([new Uint8Array(537601)], 'large.bin', {type: 'image/png'})")
	p.Sees("#files", "large.bin")
	p.Type("#compose", "Look.")
	p.Key("Enter")
	waitFor(t, "the message names the file", func() bool {
		parts, _ := s.wasAsked(sends)["parts"].([]any)
		return len(parts) == 2 && encoded(parts[1]) == `{"file":{"mediaType":"image/png","name":"large.bin",`+
			`"stored":{"sha256":"`+digest+`","size":537601}},"type":"File"}`
	})
}

func TestStoredFileIsSaved(t *testing.T) {
	s := newStage(t)
	digest := strings.Repeat("ab", 32)
	s.chat("triage", message(0, "User", fields{"parts": []fields{{"type": "File", "file": fields{"name": "big.pdf",
		"mediaType": "application/pdf", "stored": fields{"sha256": digest, "size": 1}}}}}), status("Waiting", "Answered", 1, nil))
	p := s.opened(t)
	p.Sees("article", "big.pdf, application/pdf")
	p.Click(".file button", "Save big.pdf")
	s.wasAsked("GET " + chats + "/triage/files/" + digest)
}

// slow lets files be read only once a test lets them.
const slow = `{ const read = Blob.prototype.arrayBuffer;
	window.reads = 0;
	Blob.prototype.arrayBuffer = async function () {
		await new Promise((resolve) => { window.release = resolve; });
		const bytes = await read.call(this);
		setTimeout(() => { window.reads += 1; });
		return bytes; }; }`

func TestFilesStayWithTheirChat(t *testing.T) {
	s := newStage(t)
	s.list(summary("beta", "Waiting", "Answered", nil))
	s.chat("beta", user(0, "Which?"), status("Waiting", "Answered", 1, nil))
	s.chat("triage", user(0, "Hi."), status("Waiting", "Answered", 1, nil))
	p := s.opened(t, slow)
	p.Sees("article", "Hi.")
	gives(p, dropped, "new File(['log'], 'a.log', {type: 'text/plain'})")
	p.Until("the file is being read", "window.release")
	p.Type("#compose", "Look.")
	p.Key("Enter")
	p.Click("#chats a", "beta")
	p.Sees("article", "Which?")
	p.Do("release()")
	p.Until("the file is read", "reads === 1")
	p.Gone("#files li", "a.log")
	p.Click("#chats a", "triage")
	p.Sees("#files li", "a.log")
	// Enter sends the files that are still being read.
	p.Do("release = null")
	gives(p, pasted, "new File(['log'], 'b.log', {type: 'text/plain'})")
	p.Until("the other file is being read", "window.release")
	p.Key("c")
	p.Key("Enter")
	if n := s.times(sends); n != 0 {
		t.Errorf("%d messages were sent without their files", n)
	}
	p.Do("release()")
	got := s.wasAsked(sends)
	if parts, _ := got["parts"].([]any); len(parts) != 3 {
		t.Errorf("asked for was %v", got)
	}
	if n := s.times(sends); n != 1 {
		t.Errorf("%d messages were sent", n)
	}
}

// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package fileurl

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"parley.dev/parley/internal/generation/provider/fault"
)

// standIn is what stands for a file's URL in the tests, which have to know it.
var standIn = base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{0xa7}, 32))

const fileAt = "https://files.example.com/a.png?x=<1>&y=2"

// protocols are the forms with a block of a text and a block of a file whose content is given,
// and the wrapping of blocks.
var protocols = map[string]struct {
	form             wireForm
	text, file, turn string
}{
	"chat": {chatForm, `{"type":"text","text":%s}`,
		`{"type":"image_url","image_url":{"url":"data:image/png;base64,%s","detail":"low"}}`,
		`{"messages":[{"role":"system","content":"x"},{"role":"assistant","content":null},{"role":"user","content":[%s]}],"n":1.0}`},
}

func quoted(text string) string {
	raw, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

func TestAURLIsWrittenInItsPlaceAndAllElseStays(t *testing.T) {
	for name, p := range protocols {
		t.Run(name, func(t *testing.T) {
			text, other := fmt.Sprintf(p.text, quoted("é <b> \u2028")), fmt.Sprintf(p.file, "AAAA")
			written, err := p.form.write(fmt.Appendf(nil, p.turn, text+" , "+fmt.Sprintf(p.file, standIn)+" ,"+other),
				standIns{standIn: fileAt})
			if err != nil {
				t.Fatal(err)
			}
			before, after, found := strings.Cut(string(written), text+" , ")
			wantBefore, wantAfter, _ := strings.Cut(p.turn, "%s")
			if !found || before != wantBefore || !strings.HasSuffix(after, " ,"+other+wantAfter) ||
				strings.Count(after, fileAt) != 1 || !json.Valid(written) {
				t.Errorf("got %s", written)
			}
		})
	}
}

// FuzzNothingThatIsSaidIsTakenForAFile plants what stands for a file, and all that looks like one, in what people say:
// it is never replaced.
func FuzzNothingThatIsSaidIsTakenForAFile(f *testing.F) {
	f.Add("hello", uint8(0))
	f.Add(`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}`, uint8(1))
	f.Add("data:image/png;base64,", uint8(2))
	f.Add(`"}]},{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,`, uint8(3))
	f.Fuzz(func(t *testing.T, said string, how uint8) {
		said = strings.ToValidUTF8(said, "")
		knows := how%4 != 0 // Nobody who speaks knows what stands for a file; let some.
		switch how % 4 {
		case 1:
			said += standIn
		case 2:
			said = "data:image/png;base64," + standIn
		case 3:
			said = standIn + said
		}
		for name, p := range protocols {
			file := fmt.Sprintf(p.file, standIn)
			for _, blocks := range []string{fmt.Sprintf(p.text, quoted(said)) + "," + file,
				file + "," + fmt.Sprintf(p.text, quoted(said))} {
				written, err := p.form.write(fmt.Appendf(nil, p.turn, blocks), standIns{standIn: fileAt})
				switch {
				case knows && !errors.Is(err, fault.ErrFileURLs):
					t.Errorf("%s: sent with what stands for a file in a text: %s", name, written)
				case !knows && err != nil && !strings.Contains(said, standIn):
					t.Errorf("%s: %v", name, err)
				case err == nil && !bytes.Contains(written, []byte(quoted(said))):
					t.Errorf("%s: the text became %s", name, written)
				}
			}
			// A text alone is no place for a file.
			if written, err := p.form.write(fmt.Appendf(nil, p.turn, fmt.Sprintf(p.text, quoted(said))),
				standIns{standIn: fileAt}); err == nil {
				t.Errorf("%s: sent without its file: %s", name, written)
			}
		}
	})
}

func TestARequestThatDoesNotHaveEachFileInItsPlaceIsNotSent(t *testing.T) {
	for name, p := range protocols {
		file := fmt.Sprintf(p.file, standIn)
		for what, body := range map[string]string{
			"nothing": "", "no JSON": "<html>", "a list": "[]", "an object as the list": `{"` + p.form.turns + `":{}}`,
			"cut":  fmt.Sprintf(p.turn, file)[:60],
			"none": fmt.Sprintf(p.turn, ""), "twice": fmt.Sprintf(p.turn, file+","+file),
			"more than it": fmt.Sprintf(p.turn, fmt.Sprintf(p.file, standIn+"AAAA")),
			"elsewhere":    strings.Replace(fmt.Sprintf(p.turn, file), p.form.turns, "elsewhere", 1),
		} {
			if written, err := p.form.write([]byte(body), standIns{standIn: fileAt}); !errors.Is(err, fault.ErrFileURLs) {
				t.Errorf("%s, %s: got %s and %v", name, what, written, err)
			}
		}
	}
}

// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package rewrite

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func upper(block []byte) ([]byte, error) {
	if bytes.Contains(block, []byte("keep")) {
		return nil, nil
	}
	return bytes.ToUpper(block), nil
}

func TestObjectsAreReplacedAndEveryOtherByteStays(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{`{"a":[{"b":[{"x":1},{"keep":2}]}]}`, `{"a":[{"b":[{"X":1},{"keep":2}]}]}`},
		{` { "n" : 1e2, "a" : [ {"b":"text"} , {"b" :[ {"x" : 1.0} , 7, "é\u2028<" ]} ] } `,
			` { "n" : 1e2, "a" : [ {"b":"text"} , {"b" :[ {"X" : 1.0} , 7, "é\u2028<" ]} ] } `},
		{`{"a":null,"b":[{"x":1}]}`, `{"a":null,"b":[{"x":1}]}`},
		{`{"c":{"a":[{"b":[{"x":1}]}]}}`, `{"c":{"a":[{"b":[{"x":1}]}]}}`},
	} {
		if got, err := Blocks([]byte(c.body), "a", "b", upper); err != nil || string(got) != c.want {
			t.Errorf("%s became %s, %v", c.body, got, err)
		}
	}
	if got, err := Elements([]byte(`{"a":[{"x":1},2,{"keep":3}],"z":1}`), "a", upper); err != nil ||
		string(got) != `{"a":[{"X":1},2,{"keep":3}],"z":1}` {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestABodyOfAnotherFormIsRefused(t *testing.T) {
	failed := errors.New("failed")
	for _, body := range []string{``, `[]`, `{"a":{}}`, `{"a":[1]}`, `{"a":[{"b":{}}]}`, `{"a":[{"b":[{"x":1}`, `<html>`} {
		if got, err := Blocks([]byte(body), "a", "b", upper); err == nil {
			t.Errorf("%s became %s", body, got)
		}
	}
	if _, err := Elements([]byte(`{"a":[{}]}`), "a", func([]byte) ([]byte, error) { return nil, failed }); !errors.Is(err,
		failed) {
		t.Errorf("got %v", err)
	}
}

func TestARequestIsSentWithItsOtherBodyAsOftenAsItMustBe(t *testing.T) {
	given := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "https://models.example.com",
		strings.NewReader("before"))
	r, err := Request(given, func(body []byte) ([]byte, error) { return append(body, " and after"...), nil })
	if err != nil {
		t.Fatal(err)
	}
	again, err := r.GetBody()
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range []io.Reader{r.Body, again} {
		if sent, err := io.ReadAll(body); err != nil || string(sent) != "before and after" ||
			r.ContentLength != int64(len(sent)) {
			t.Errorf("sent %q of %d bytes, %v", sent, r.ContentLength, err)
		}
	}
	if given.ContentLength != int64(len("before")) {
		t.Error("the caller's request was changed")
	}
}

func TestJSONIsEncodedWithoutEscapesForHTML(t *testing.T) {
	if got, err := Encode(map[string]string{"a": "<b> & c"}); err != nil || string(got) != `{"a":"<b> & c"}` {
		t.Errorf("got %s, %v", got, err)
	}
}

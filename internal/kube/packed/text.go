// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package packed

import (
	"encoding/binary"
	"encoding/hex"
	"strings"

	"github.com/google/uuid"
)

// The forms of a text, in the two lowest bits of the number before it. The others are the number that is said here.
const (
	// formPlain is the text itself, of so many bytes.
	formPlain = iota
	// formAgain is the text of the object that came so many texts after its first.
	formAgain
	// formWord is the word of this number.
	formWord
	// formHex is so many bytes in hexadecimal digits; 0: a UUID.
	formHex
	forms
)

// shortest is the length in bytes from which on it saves something to refer to a text.
const shortest = 3

// uuidLength is the length of a UUID in its usual form.
const uuidLength = 36

// writer packs one object.
type writer struct {
	out   []byte
	texts []string
	// last is the last time that was written, in seconds since 1970.
	last  int64
	words *words
}

func (w *writer) count(n int)    { w.out = binary.AppendUvarint(w.out, uint64(n)) }
func (w *writer) number(n int64) { w.out = binary.AppendVarint(w.out, n) }

func (w *writer) bytes(b string) {
	w.count(len(b))
	w.out = append(w.out, b...)
}

// form writes which form a text has, and its number.
func (w *writer) form(form, n int) { w.count(n*forms + form) }

// text writes a text in the shortest form; of one that repeats in other objects a word is made.
func (w *writer) text(s string, repeats bool) {
	for i, before := range w.texts {
		if before == s {
			w.form(formAgain, i)
			return
		}
	}
	if repeats {
		if n, ok := w.words.number(s); ok {
			w.form(formWord, n)
			return
		}
	}
	w.note(s)
	switch raw, isUUID := digits(s); {
	case isUUID:
		w.form(formHex, 0)
		w.out = append(w.out, raw...)
	case len(raw) > 0:
		w.form(formHex, len(raw))
		w.out = append(w.out, raw...)
	default:
		w.form(formPlain, len(s))
		w.out = append(w.out, s...)
	}
}

// digits are the bytes that a text is in hexadecimal digits, as a UUID or one after the other; nil if it is neither.
func digits(s string) (raw []byte, isUUID bool) {
	if len(s) == uuidLength {
		if id, err := uuid.Parse(s); err == nil && id.String() == s {
			return id[:], true
		}
	}
	if raw, err := hex.DecodeString(s); err == nil && hex.EncodeToString(raw) == s {
		return raw, false
	}
	return nil, false
}

// note makes a text one that the rest of the object may refer to.
func (w *writer) note(s string) {
	if len(s) >= shortest {
		w.texts = append(w.texts, s)
	}
}

// reader unpacks one object.
type reader struct {
	in    string
	texts []string
	last  int64
	words *words
}

func (r *reader) count() int { return int(r.uvarint()) }

func (r *reader) number() int64 {
	u := r.uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

func (r *reader) uvarint() (n uint64) {
	for i := 0; ; i++ {
		b := r.in[i]
		n |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			r.in = r.in[i+1:]
			return n
		}
	}
}

// take is the next n bytes, which are part of the packed object.
func (r *reader) take(n int) string {
	s := r.in[:n]
	r.in = r.in[n:]
	return s
}

func (r *reader) bytes() string { return r.take(r.count()) }

func (r *reader) text() string {
	n := r.count()
	switch form := n % forms; form {
	case formAgain:
		return r.texts[n/forms]
	case formWord:
		return r.words.word(n / forms)
	case formHex:
		return r.note(r.hex(n / forms))
	}
	return r.note(strings.Clone(r.take(n / forms)))
}

func (r *reader) hex(n int) string {
	if n == 0 {
		return uuid.UUID([]byte(r.take(len(uuid.UUID{})))).String()
	}
	return hex.EncodeToString([]byte(r.take(n)))
}

func (r *reader) note(s string) string {
	if len(s) >= shortest {
		r.texts = append(r.texts, s)
	}
	return s
}

// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"encoding/hex"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// replaceEscaped returns the value without the text, whichever of its characters are escaped. Programs differ in that:
// many write JSON in ASCII alone, and some escape slashes or plus signs.
func (t *Text) replaceEscaped(value string) string {
	if len(t.unescaped) < minBytes || !strings.ContainsAny(value, `\%`) {
		return value
	}
	plain, places := unescape(value)
	var left strings.Builder
	done := 0
	for from := 0; ; {
		at := strings.Index(plain[from:], t.unescaped)
		if at < 0 {
			return left.String() + value[done:]
		}
		begin, end := places[from+at], places[from+at+len(t.unescaped)]
		left.WriteString(value[done:begin])
		left.WriteString(mask(utf8.RuneCountInString(value[begin:end])))
		from, done = from+at+len(t.unescaped), end
	}
}

// unescape decodes the escapes of JSON, also of JSON in JSON, and of URLs. places has where each byte of the result is
// in the value, and the end of the value.
func unescape(value string) (plain string, places []int) {
	var b strings.Builder
	b.Grow(len(value))
	places = make([]int, 0, len(value)+1)
	for at := 0; at < len(value); {
		decoded, size := decode(value[at:])
		b.WriteString(decoded)
		for range len(decoded) {
			places = append(places, at)
		}
		at += size
	}
	return b.String(), append(places, len(value))
}

// decode decodes the escape or the byte that the value begins with.
func decode(value string) (decoded string, size int) {
	switch value[0] {
	case '\\':
		return decodeJSON(value)
	case '%':
		if octet, err := hex.DecodeString(value[1:min(3, len(value))]); err == nil && len(octet) == 1 {
			return string(octet), 3
		}
	}
	return value[:1], 1
}

// letters are the characters that JSON escapes with a letter, or with themselves.
var letters = map[byte]string{'"': `"`, '/': "/", 'b': "\b", 'f': "\f", 'n': "\n", 'r': "\r", 't': "\t"}

// decodeJSON decodes an escape. Each level of JSON doubles its backslashes, so their number says nothing.
func decodeJSON(value string) (decoded string, size int) {
	rest := strings.TrimLeft(value, `\`)
	size = len(value) - len(rest)
	if unit, ok := codeUnit(rest); ok {
		low := strings.TrimLeft(rest[5:], `\`)
		if second, ok := codeUnit(low); ok && utf16.DecodeRune(unit, second) != utf8.RuneError {
			return string(utf16.DecodeRune(unit, second)), len(value) - len(low) + 5
		}
		return string(unit), size + 5
	}
	if rest != "" && letters[rest[0]] != "" {
		return letters[rest[0]], size + 1
	}
	return `\`, size
}

// codeUnit is the UTF-16 code unit of an escape such as u00e4.
func codeUnit(escape string) (unit rune, ok bool) {
	if len(escape) < 5 || escape[0] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(escape[1:5], 16, 16)
	return rune(n), err == nil
}

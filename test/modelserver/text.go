// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"fmt"
	"strings"
	"text/template"
	"unicode"
	"unicode/utf8"
)

// compiledText is a Text whose templates were parsed.
type compiledText struct {
	source Text
	// templates has an entry for Value, or for each chunk; nil where the text is no template.
	templates []*template.Template
	// repeated is the text of Repeat, made once and shared by all replies.
	repeated string
}

var templateFuncs = template.FuncMap{
	"join": func(sep string, items []string) string { return strings.Join(items, sep) },
}

func compileText(t Text) (*compiledText, error) {
	c, err := literalText(t)
	if err != nil {
		return nil, err
	}
	texts := t.Chunks
	if t.Value != "" {
		texts = []string{t.Value}
	}
	for _, text := range texts {
		if !strings.Contains(text, "{{") {
			c.templates = append(c.templates, nil)
			continue
		}
		parsed, err := template.New("text").Option("missingkey=error").Funcs(templateFuncs).Parse(text)
		if err != nil {
			return nil, fmt.Errorf("parse the template: %w", err)
		}
		// Executed once now, a misspelt fact is an error of the script and not of some later request.
		if err := parsed.Execute(&strings.Builder{}, Facts{}); err != nil &&
			strings.Contains(err.Error(), "can't evaluate field") {
			return nil, fmt.Errorf("execute the template: %w", err)
		}
		c.templates = append(c.templates, parsed)
	}
	return c, nil
}

// literalText is a text that is sent as it is, also where it contains "{{".
func literalText(t Text) (*compiledText, error) {
	if err := t.validate(); err != nil {
		return nil, err
	}
	c := &compiledText{source: t}
	if t.Repeat != nil {
		c.repeated = repeatedText(*t.Repeat)
	}
	return c, nil
}

// repeatedText is cut before a character that would not fit as a whole, so it may be up to 3 bytes short.
func repeatedText(r Repeat) string {
	s := strings.Repeat(r.Text, r.Bytes/len(r.Text)+1)
	return s[:runeBoundary(s, r.Bytes)]
}

func (c *compiledText) render(f Facts) (string, []string, error) {
	if c.source.Chunks == nil {
		text, err := c.execute(0, c.source.Value, f)
		if err != nil {
			return "", nil, err
		}
		if c.source.Repeat != nil {
			text = c.repeated
		}
		return text, c.source.cut(text), nil
	}
	chunks := make([]string, 0, len(c.source.Chunks))
	for i, chunk := range c.source.Chunks {
		text, err := c.execute(i, chunk, f)
		if err != nil {
			return "", nil, err
		}
		chunks = append(chunks, text)
	}
	return strings.Join(chunks, ""), chunks, nil
}

func (c *compiledText) execute(i int, literal string, f Facts) (string, error) {
	if i >= len(c.templates) || c.templates[i] == nil {
		return literal, nil
	}
	var b strings.Builder
	if err := c.templates[i].Execute(&b, f); err != nil {
		return "", fmt.Errorf("execute the template: %w", err)
	}
	return b.String(), nil
}

func (t Text) cut(text string) []string {
	switch {
	case t.PieceBytes > 0:
		return cutBytes(text, t.PieceBytes)
	case t.PieceWords > 0:
		return cutWords(text, t.PieceWords)
	default:
		return []string{text}
	}
}

func cutBytes(text string, n int) []string {
	out := make([]string, 0, len(text)/n+1)
	for len(text) > 0 {
		at := runeBoundary(text, n)
		if at == 0 {
			_, at = utf8.DecodeRuneInString(text)
		}
		out = append(out, text[:at])
		text = text[at:]
	}
	return out
}

// runeBoundary is the last place at or before n where text can be cut.
func runeBoundary(text string, n int) int {
	if n >= len(text) {
		return len(text)
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return n
}

func cutWords(text string, n int) []string {
	var out []string
	start, words, inSpace := 0, 0, false
	for i, r := range text {
		space := unicode.IsSpace(r)
		if inSpace && !space {
			words++
			if words == n {
				out, start, words = append(out, text[start:i]), i, 0
			}
		}
		inSpace = space
	}
	if start < len(text) {
		out = append(out, text[start:])
	}
	return out
}

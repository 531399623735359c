// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"text/template"
	"unicode/utf8"
)

// compiledText is a Text whose templates were parsed.
type compiledText struct {
	source Text
	// texts are the Chunks, or the one text that is cut; templates has nil for one that is no template.
	texts     []string
	templates []*template.Template
}

var templateFuncs = template.FuncMap{
	"join": func(sep string, items []string) string { return strings.Join(items, sep) },
	// field is a field of a JSON object, such as that of a tool's result.
	"field": func(name, object string) (value any, err error) {
		var fields map[string]any
		err = json.Unmarshal([]byte(object), &fields)
		return fields[name], err
	},
}

// compileText parses the templates of a text, unless it is literal.
func compileText(t Text, literal bool) (*compiledText, error) {
	if err := t.validate(); err != nil {
		return nil, err
	}
	c := &compiledText{source: t, texts: t.Chunks}
	switch {
	case t.Repeat != nil:
		c.texts = []string{repeatedText(*t.Repeat)}
	case t.Chunks == nil:
		c.texts = []string{t.Value}
	}
	c.templates = make([]*template.Template, len(c.texts))
	for i, text := range c.texts {
		if literal || t.Repeat != nil || !strings.Contains(text, "{{") {
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
		c.templates[i] = parsed
	}
	return c, nil
}

// repeatedText is cut before a character that would not fit as a whole, so it may be up to 3 bytes short.
func repeatedText(r Repeat) string {
	s := strings.Repeat(r.Text, r.Bytes/len(r.Text)+1)
	return s[:runeBoundary(s, r.Bytes)]
}

func (c *compiledText) render(f Facts) (string, []string, error) {
	chunks := slices.Clone(c.texts)
	for i, t := range c.templates {
		if t == nil {
			continue
		}
		var b strings.Builder
		if err := t.Execute(&b, f); err != nil {
			return "", nil, fmt.Errorf("execute the template: %w", err)
		}
		chunks[i] = b.String()
	}
	text := strings.Join(chunks, "")
	if c.source.Chunks == nil {
		chunks = c.source.cut(text)
	}
	return text, chunks, nil
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

var word = regexp.MustCompile(`\s*\S+\s*|\s+$`)

func cutWords(text string, n int) []string {
	var out []string
	for words := range slices.Chunk(word.FindAllString(text, -1), n) {
		out = append(out, strings.Join(words, ""))
	}
	return out
}

// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"go/ast"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// unusual are words that Kubernetes engineers neither write nor search for: say no longer, because there is no, without
// success, no one, a person, next to, the limit, allowed, fix, archive, other.
var unusual = regexp.MustCompile(
	`(?i)\b(any more|for want of|in vain|nobody|somebody|beside|as many as may|let in|mend|mends|put away|puts away|stranger)\b`)

// TestTextsAreInUsualWords looks at every string of the product: errors, conditions, flags, docs of tools and prompts.
func TestTextsAreInUsualWords(t *testing.T) {
	for _, dir := range []string{"api", "client", "cmd", "controllers", "internal"} {
		err := filepath.WalkDir(filepath.Join("../..", dir), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			for _, text := range textsOf(parsed(t, path)) {
				if word := unusual.FindString(text); word != "" {
					t.Errorf("%s says %q: %s", path, word, text)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func textsOf(file *ast.File) (texts []string) {
	ast.Inspect(file, func(n ast.Node) bool {
		if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			if text, err := strconv.Unquote(literal.Value); err == nil {
				texts = append(texts, text)
			}
		}
		return true
	})
	return texts
}

func TestAnUnusualWordIsFound(t *testing.T) {
	texts := textsOf(parsedSource(t, "package x\nvar _ = `It waited in vain`"))
	if len(texts) != 1 || unusual.FindString(texts[0]) != "in vain" {
		t.Errorf("found %q", texts)
	}
}

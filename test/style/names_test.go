// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package style

import (
	"go/ast"
	"strings"
	"testing"
	"unicode"
)

// mostWords is how many words the name of a test may have, without Test, Benchmark or Fuzz.
const mostWords = 8

func TestNamesOfTestsAreShort(t *testing.T) {
	eachFile(t, dirs, func(path string) {
		if !strings.HasSuffix(path, "_test.go") {
			return
		}
		for _, declared := range parsed(t, path).Decls {
			if f, ok := declared.(*ast.FuncDecl); ok && f.Recv == nil {
				if name := nameOfTest(f.Name.Name); words(name) > mostWords {
					t.Errorf("%s: %s has %d words, and at most %d are read: say event and outcome", path, f.Name.Name,
						words(name), mostWords)
				}
			}
		}
	})
}

// nameOfTest is what follows Test, Benchmark or Fuzz; empty for another function.
func nameOfTest(function string) string {
	for _, prefix := range []string{"Test", "Benchmark", "Fuzz"} {
		if name, ok := strings.CutPrefix(function, prefix); ok {
			return name
		}
	}
	return ""
}

// words counts the words of a name in mixed caps. Capitals in a row are one word, but for the last of them if small
// letters follow.
func words(name string) (n int) {
	letters := []rune(name)
	for i, letter := range letters {
		isFirst := i == 0 || !unicode.IsUpper(letters[i-1])
		beginsLast := i > 0 && i+1 < len(letters) && unicode.IsLower(letters[i+1])
		if unicode.IsUpper(letter) && (isFirst || beginsLast) {
			n++
		}
	}
	return n
}

func TestWordsOfNamesAreCounted(t *testing.T) {
	for name, want := range map[string]int{"": 0, "AReplyIsRead": 4, "MCPServerIsGone": 4, "ReadsURL": 2, "Of300Chats": 2,
		"UTF8IsKept": 3} {
		if got := words(name); got != want {
			t.Errorf("%s: %d words, want %d", name, got, want)
		}
	}
}

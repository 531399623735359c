// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

var (
	// exampleWords are the words of a command line, as a shell splits it, and quoted are their parts between quotes.
	exampleWords = regexp.MustCompile(`(?:"[^"]*"|'[^']*'|[^\s"'])+`)
	quoted       = regexp.MustCompile(`"([^"]*)"|'([^']*)'`)
)

// examples are the arguments of the command lines of kubectl chat in the help of a verb.
func examples(t *testing.T, verb *cobra.Command) (all [][]string) {
	t.Helper()
	for _, line := range regexp.MustCompile(`\n| \| `).Split(verb.Example, -1) {
		typed, ok := strings.CutPrefix(strings.TrimSpace(line), "kubectl chat")
		if !ok { // It feeds the next one.
			if program, _, _ := strings.Cut(typed, " "); !slices.Contains([]string{"kubectl", "git", "less"}, program) {
				t.Errorf("%s: %q runs another program", verb.CommandPath(), line)
			}
			continue
		}
		typed, _, _ = strings.Cut(typed, " > ")
		typed, _, _ = strings.Cut(typed, " < ")
		words := exampleWords.FindAllString(typed, -1)
		for i, word := range words {
			words[i] = quoted.ReplaceAllString(word, "$1$2")
		}
		all = append(all, words)
	}
	return all
}

func eachVerb(of *cobra.Command, visit func(*cobra.Command)) {
	for _, verb := range of.Commands() {
		eachVerb(verb, visit)
		visit(verb)
	}
}

func TestEveryVerbHasTwoExamples(t *testing.T) {
	t.Parallel()
	root := NewCommand(genericiooptions.IOStreams{})
	eachVerb(root, func(verb *cobra.Command) {
		own := 0
		for _, example := range examples(t, verb) {
			found, _, err := root.Find(example)
			if err != nil {
				t.Errorf("%s: %q: %v", verb.CommandPath(), example, err)
			} else if strings.HasPrefix(found.CommandPath()+" ", verb.CommandPath()+" ") {
				own++
			}
		}
		if own < 2 {
			t.Errorf("%s has %d examples", verb.CommandPath(), own)
		}
	})
}

// succeeding are the verbs whose examples succeed for each chat of the name, or are forbidden in other namespaces.
// Those of the other verbs succeed in some states of a chat, and are not wrong usage in any.
var succeeding = []string{"calls", "export", "get", "ls", "settings", "show", "usage", "version"}

func TestExamplesOfHelpRun(t *testing.T) {
	const list = "apiVersion: v1\nkind: List\nitems: []\n"
	p := newPerson(t)
	t.Setenv("PATH", t.TempDir()) // The verb ui opens no browser.
	t.Chdir(t.TempDir())
	for _, dir := range []string{"backup", "testdata"} {
		check.OK(t, os.Mkdir(dir, 0o700))
	}
	for name, content := range map[string]string{"messages.json": `[{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hi"}]`,
		"causes.json": `{"type": "object"}`, "password.txt": "hunter22", "testdata/a": "a", "dashboard.png": "\x89PNG\r\n\x1a\n",
		"chat.yaml":   "apiVersion: parley.dev/v1beta1\nkind: Chat\nmetadata: {name: of-a-file}\nspec: {prompt: Hi}\n",
		"backup.yaml": list, "backup/a.yaml": list} {
		check.OK(t, os.WriteFile(name, []byte(content), 0o600))
	}
	p.create(chattest.In(p.namespace, chattest.Class("reviewer")))
	for _, succeed := range []bool{true, false} { // Some of the others delete the chat.
		var running sync.WaitGroup
		eachVerb(NewCommand(genericiooptions.IOStreams{}), func(verb *cobra.Command) {
			if slices.Contains(succeeding, strings.TrimPrefix(verb.CommandPath(), "kubectl chat ")) != succeed {
				return
			}
			for _, example := range examples(t, verb) {
				running.Go(func() { p.runExample(example, succeed) })
			}
		})
		running.Wait()
	}
}

// runExample runs an example, for as long as somebody would wait who only wants to see whether it works.
func (p *person) runExample(words []string, succeed bool) {
	c := p.start("token", "Go on.\n", append(slices.Clone(words), "--gateway", p.gateway)...)
	var err error
	select {
	case err = <-c.done:
	case <-time.After(5 * time.Second):
		c.stop()
		err = <-c.done
	}
	if exitCode(err) == exitUsage && !strings.Contains(err.Error(), "at a terminal") ||
		succeed && err != nil && exitCode(err) != exitForbidden {
		p.t.Errorf("kubectl chat %q: %v: %s", words, err, c.errOut.String())
	}
}

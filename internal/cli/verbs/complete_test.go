// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"bytes"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

// completed is what a shell is told could be typed next: a word with its description a line, and the directive. In what
// was typed, | is where the next word would begin.
func (p *person) completed(kubeconfig, typed string) string {
	p.t.Helper()
	words := strings.Fields(typed)
	if last := len(words) - 1; words[last] == "|" {
		words[last] = ""
	}
	c := p.start(kubeconfig, "", append([]string{"__complete"}, words...)...)
	c.succeeds()
	return c.out.String()
}

func TestNamesAreCompleted(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.said("first", "what\tof\x1b[2J\nit?")
	p.want()
	p.chat.Status.Title = "It is \x1b]0;down\a"
	p.chat.Status.Queue = []v1alpha1.QueuedMessage{{Name: "later"}}
	p.updateStatus(p.chat)
	archived := chattest.In(p.namespace, chattest.Chat("archived"))
	archived.Spec.Archived = true
	p.create(archived)
	archived.Status.Archived = true
	p.updateStatus(archived)
	p.create(chattest.In(p.namespace, chattest.Chat("later")))
	p.create(&v1alpha1.ChatClass{ObjectMeta: p.meta("coder"), Spec: v1alpha1.ChatClassSpec{Description: "Writes code."}})
	p.create(chattest.In(p.namespace, chattest.Config("small")))
	reply := p.chat.Status.History.Head
	for typed, want := range map[string]string{
		"send t":                   "triage\tRequiresAction It is ]0;down\n:4\n",
		"send |":                   "later\ntriage\tRequiresAction It is ]0;down\n:4\n",
		"show a":                   "archived\n:4\n",
		"send a":                   ":4\n",
		"unarchive |":              "archived\n:4\n",
		"resume |":                 ":4\n",
		"show triage |":            ":4\n",
		"edit triage |":            "first\tUser: what of [2J it?\n:4\n",
		"delete triage " + reply:   reply + "\tAssistant:\n:4\n",
		"promote triage |":         "later\n:4\n",
		"approve triage |":         "call_2\tcurrent_time {}\n:4\n",
		"answer triage |":          "call_1=\topen_ticket {\"title\": \"CNI down\"}\n:6\n",
		"answer triage call_1=1 |": "call_1=\topen_ticket {\"title\": \"CNI down\"}\n:6\n",
		"approve other |":          ":4\n",
		"new --mode |":             "Plan\nExplore\n:4\n",
		"usage --by |":             "chat\nmodel\nconfig\nday\n:4\n",
		"show --context |":         "c\t" + p.namespace + "\n:4\n",
		"show -n " + p.namespace:   p.namespace + "\n:4\n",
		"new --class |":            "coder\tWrites code.\n:4\n",
		"import --model |":         "small\tscripted\n:4\n",
	} {
		if got := p.completed("certificate", typed); got != want {
			t.Errorf("%s: told %q, want %q", typed, got, want)
		}
	}
	if got := p.completed("token", "new --model |"); got != ":4\n" {
		t.Errorf("who may not list ChatModelConfigs is told %q", got)
	}
}

func TestEveryVerbOfAChatCompletesItsName(t *testing.T) {
	for _, verb := range NewCommand(genericiooptions.IOStreams{}).Commands() {
		first, _, _ := strings.Cut(strings.TrimPrefix(verb.Use, verb.Name()+" "), " ")
		if (strings.Trim(first, "[]") == "CHAT") != (verb.ValidArgsFunction != nil) {
			t.Errorf("kubectl chat %s", verb.Use)
		}
	}
}

func TestCompletionEndsWithoutAnAnswer(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	check.OK(t, err)
	defer func() { _ = silent.Close() }()
	config := clientcmdapi.Config{CurrentContext: "c",
		Clusters:  map[string]*clientcmdapi.Cluster{"c": {Server: "http://" + silent.Addr().String()}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"c": {Token: "t"}},
		Contexts:  map[string]*clientcmdapi.Context{"c": {Cluster: "c", AuthInfo: "c"}}}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	check.OK(t, clientcmd.WriteToFile(config, path))
	for _, words := range []string{"send", "new --class", "show -n"} {
		var out, errOut bytes.Buffer
		begun := time.Now()
		code := Run(t.Context(), genericiooptions.IOStreams{Out: &out, ErrOut: &errOut},
			append(append([]string{"__complete", "--kubeconfig", path}, strings.Fields(words)...), ""))
		if took := time.Since(begun); took > completionTimeout+time.Second {
			t.Errorf("%s: it took %s", words, took)
		}
		if code != 0 || out.String() != ":4\n" || strings.Count(errOut.String(), "\n") != 1 {
			t.Errorf("%s: it ends with %d, tells %q and %q", words, code, out.String(), errOut.String())
		}
	}
}

func TestShellsAreToldHowToComplete(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		var out, errOut, plain bytes.Buffer
		if code := Run(t.Context(), genericiooptions.IOStreams{Out: &out, ErrOut: &errOut},
			[]string{"completion", shell}); code != 0 {
			t.Errorf("%s: it ends with %d: %s", shell, code, errOut.String())
		}
		root := NewCommand(genericiooptions.IOStreams{})
		for name, write := range map[string]func(io.Writer) error{
			"bash": func(w io.Writer) error { return root.GenBashCompletionV2(w, true) }, "zsh": root.GenZshCompletion,
			"fish":       func(w io.Writer) error { return root.GenFishCompletion(w, true) },
			"powershell": root.GenPowerShellCompletionWithDesc} {
			if name != shell {
				continue
			}
			if err := write(&plain); err != nil || plain.String() != out.String() {
				t.Errorf("%s: the script is not cobra's, %v", shell, err)
			}
		}
	}
}

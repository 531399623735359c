// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"bytes"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"parley.dev/parley/api/v1beta1"
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
	p.chat.Status.Queue = []v1beta1.QueuedMessage{{Name: "later"}}
	p.updateStatus(p.chat)
	archived := chattest.In(p.namespace, chattest.Chat("archived"))
	archived.Spec.Archived = true
	p.create(archived)
	archived.Status.Archived = true
	p.updateStatus(archived)
	p.create(chattest.In(p.namespace, chattest.Chat("later")))
	p.create(&v1beta1.ChatClass{ObjectMeta: p.meta("coder"), Spec: v1beta1.ChatClassSpec{Description: "Writes code."}})
	p.create(chattest.In(p.namespace, chattest.Config("small")))
	reply := p.chat.Status.History.Head
	for typed, want := range map[string]string{
		"send t":                   "triage\tRequiresAction It is ]0;down\n:4\n",
		"send |":                   "later\ntriage\tRequiresAction It is ]0;down\n:4\n",
		"show a":                   "archived\n:4\n",
		"send a":                   ":4\n",
		"unarchive |":              "archived\n:4\n",
		"unarchive other a":        "archived\n:4\n",
		"resume |":                 ":4\n",
		"show triage |":            ":4\n",
		"edit triage |":            "first\tUser: what of [2J it?\n:4\n",
		"delete triage " + reply:   reply + "\tAssistant:\n:4\n",
		"promote triage |":         "later\n:4\n",
		"approve triage |":         "call_2\tcurrent_time {}\n:4\n",
		"answer triage |":          "call_1=\topen_ticket {\"title\": \"CNI down\"}\n:6\n",
		"answer triage call_1=1 |": "call_1=\topen_ticket {\"title\": \"CNI down\"}\n:6\n",
		"approve other |":          ":4\n",
		"approve |":                "triage\tRequiresAction It is ]0;down\n:4\n",
		"deny l":                   ":4\n",
		"fork triage --at f":       "first\tUser: what of [2J it?\n:4\n",
		"fork --at |":              ":4\n",
		"share triage --with |":    ":4\n",
		"ls -o |":                  "name\nwide\njson\nyaml\n:4\n",
		"title triage -o |":        "name\njson\nyaml\n:4\n",
		"new --mode |":             "Plan\nExplore\n:4\n",
		"usage --by |":             "chat\nmodel\nconfig\nday\n:4\n",
		"show --context |":         "c\t" + p.namespace + "\n:4\n",
		"show -n " + p.namespace:   p.namespace + "\n:4\n",
		"new --class |":            "coder\tWrites code.\n:4\n",
		"import --model |":         "small\tscripted\n:4\n",
	} {
		check.Equal(t, typed, want, p.completed("certificate", typed))
	}
	check.Equal(t, "who may not list ChatModelConfigs is told", ":4\n", p.completed("token", "new --model |"))
}

func TestEveryVerbOfAChatCompletesItsName(t *testing.T) {
	for _, verb := range NewCommand(genericiooptions.IOStreams{}).Commands() {
		first, _, _ := strings.Cut(strings.TrimPrefix(verb.Use, verb.Name()+" "), " ")
		check.Equal(t, verb.Use, strings.HasPrefix(strings.Trim(first, "[]."), "CHAT"), verb.ValidArgsFunction != nil)
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
		code := Run(t.Context(), genericiooptions.IOStreams{Out: &out, ErrOut: &errOut},
			append(append([]string{"__complete", "--kubeconfig", path}, strings.Fields(words)...), ""))
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

func TestItsNameMakesTheProgramComplete(t *testing.T) {
	for name, want := range map[string]string{"/bin/kubectl-chat": "ls,", "kubectl_complete-chat": "__complete,ls,",
		"/bin/kubectl_complete-chat.exe": "__complete,ls,"} {
		check.Equal(t, name, want, strings.Join(Arguments([]string{name, "ls", ""}), ","))
	}
	var out, errOut bytes.Buffer
	Run(t.Context(), genericiooptions.IOStreams{Out: &out, ErrOut: &errOut}, []string{"completion", "--help"})
	check.Contains(t, out.String(), "kubectl_complete-chat in PATH")
}

func TestANameMayHaveItsType(t *testing.T) {
	for _, c := range []struct {
		use         string
		args        string
		want, wrong string
	}{
		{"show CHAT", "triage", "triage", ""},
		{"show CHAT", "chat/triage", "triage", ""},
		{"show CHAT", "chats/triage", "triage", ""},
		{"show CHAT", "chat.parley.dev/triage", "triage", ""},
		{"show CHAT", "Chats.v1beta1.parley.dev/triage", "triage", ""},
		{"show CHAT", "chat.example.com/triage", "", `"chat.example.com/triage" names no chat: type its name, or chat/NAME`},
		{"show CHAT", "toolapproval.parley.dev/triage-x", "", "names no chat"},
		{"show CHAT", "chat/", "", "names no chat"},
		{"usage [CHAT]", "", "", ""},
		{"new [NAME [TEXT...]]", "chat/nightly- see a/b", "nightly- see a/b", ""},
		{"edit CHAT MESSAGE [TEXT...]", "chat/triage chatmessage.parley.dev/m a/b", "triage m a/b", ""},
		{"edit CHAT MESSAGE [TEXT...]", "triage chat/m", "", "names no chatmessage"},
		{"answer CHAT CALL=JSON [CALL=JSON...]", "chat/triage a/b=1", "triage a/b=1", ""},
	} {
		names, err := plainNames(c.use, strings.Fields(c.args))
		if c.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), c.wrong) || exitCode(err) != 2 {
				t.Errorf("%s with %q: error %v", c.use, c.args, err)
			}
			continue
		}
		if err != nil || !slices.Equal(names, strings.Fields(c.want)) {
			t.Errorf("%s with %q: got %v, %v", c.use, c.args, names, err)
		}
	}
}

func TestCallIsFoundByPartOfID(t *testing.T) {
	calls := []v1beta1.PendingToolCall{{ID: "toolu_01A", Name: "a"}, {ID: "toolu_02B", Name: "b"},
		{ID: "toolu", Name: "c"}, {ID: "call_b2=x", Name: "d"}}
	for typed, c := range map[string]struct{ want, wrong string }{
		"toolu_02B": {"b", ""}, "toolu_01": {"a", ""}, "2B": {"b", ""}, "toolu": {"c", ""}, "2=x": {"d", ""},
		"nope": {"", ""}, "": {"", ""}, "toolu_0": {"", `"toolu_0" can be toolu_01A (a), toolu_02B (b): type more of the id`},
	} {
		call, err := findCall(calls, typed)
		switch {
		case c.wrong != "":
			if err == nil || err.Error() != c.wrong {
				t.Errorf("%q: error %v", typed, err)
			}
		case err != nil || (call == nil) != (c.want == "") || call != nil && call.Name != c.want:
			t.Errorf("%q: got %+v, %v", typed, call, err)
		}
	}
	for arg, c := range map[string]struct{ want, output string }{
		"toolu_01A={}": {"a", "{}"}, `2B={"a":"b=c"}`: {"b", `{"a":"b=c"}`}, "call_b2=x=1": {"d", "1"},
		"call_=1": {"d", "1"}, "2=x=1": {"d", "1"}, "other=1": {"", ""}, "=1": {"", ""}, "toolu_01A": {"", ""},
	} {
		call, output, err := callIn(calls, arg)
		if err != nil || output != c.output || (call == nil) != (c.want == "") || call != nil && call.Name != c.want {
			t.Errorf("%q: got %+v, %q, %v", arg, call, output, err)
		}
	}
}

func TestTheOnlyCallNeedsNoID(t *testing.T) {
	decision := &v1beta1.ToolDecision{}
	for want, calls := range map[string][]v1beta1.PendingToolCall{
		"b": {{ID: "1", Name: "a", Decision: decision}, {ID: "2", Name: "b"}},
		"every call of chat triage that requires approval is decided: 1 (a)": {{ID: "1", Name: "a", Decision: decision}},
		"chat triage has 2 calls that wait for approval: name one of 1 (a), 2 (b)": {{ID: "1", Name: "a"},
			{ID: "2", Name: "b"}},
	} {
		call, err := onlyUndecided("triage", calls)
		if call != nil && call.Name != want || err != nil && err.Error() != want {
			t.Errorf("got %+v, %v, want %s", call, err, want)
		}
	}
}

func TestWordsAreQuotedForTheShell(t *testing.T) {
	for word, want := range map[string]string{"call_1": "call_1", "a b": "'a b'", "it's": `'it'\''s'`, "": "''",
		"$x": "'$x'", "call_1=JSON": "call_1=JSON"} {
		check.Equal(t, word, want, shellWord(word))
	}
}

func TestEachCallNeedsOneResultInJSON(t *testing.T) {
	calls := []v1beta1.PendingToolCall{{ID: "call_1", Name: "open_ticket"}, {ID: "b=2", Name: "send_mail"}}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"both":    {[]string{`b=2={"to":"a=b"}`, `call_1=4711`}, ""},
		"one":     {[]string{`call_1=4711`}, "b=2 (send_mail) has no result yet"},
		"unknown": {[]string{`call_9=1`}, "give CALL=JSON for call_1 (open_ticket), b=2 (send_mail)"},
		"twice":   {[]string{`call_1=1`, `call_1=2`}, "call call_1 has two results"},
		"no JSON": {[]string{`call_1=done`}, `such as call_1='"done"'`},
	} {
		t.Run(name, func(t *testing.T) {
			parts, err := parseResults("triage", calls, c.args)
			if c.want == "" {
				if err != nil || len(parts) != 2 || parts[0].Output != "4711" ||
					parts[1].Output != `{"to":"a=b"}` {
					t.Errorf("got %+v, %v", parts, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v", err)
			}
		})
	}
}

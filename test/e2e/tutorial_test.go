// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/testcluster"
	"parley.dev/parley/test/modelserver"
)

// command is one of a tutorial, with the output that the page shows.
type command struct{ text, output string }

// mayFail reports whether the page shows that the command fails.
func (c command) mayFail() bool { return c.output == "no\n" || strings.HasPrefix(c.output, "Error ") }

// commands are those of a page: the lines of its blocks that begin with a dollar, each with its here-document.
func commands(t *testing.T, page string) (all []command) {
	t.Helper()
	text, err := os.ReadFile(testcluster.Path("docs", "tutorials", page))
	check.OK(t, err)
	document := false
	for line := range strings.Lines(string(text)) {
		line, inBlock := strings.CutPrefix(line, "    ")
		start, isCommand := strings.CutPrefix(line, "$ ")
		switch {
		case !inBlock:
		case isCommand:
			document = strings.Contains(start, "<<'Y'")
			all = append(all, command{text: start})
		case document:
			document = line != "Y\n"
			all[len(all)-1].text += line
		case len(all) > 0:
			all[len(all)-1].output += line
		}
	}
	return all
}

// follow runs the commands of a tutorial as an administrator who has install.yaml, and compares their output with the
// page. The replacer names what is different here: images, and where the model is.
func (w *world) follow(page string, here *strings.Replacer) {
	w.t.Helper()
	all := commands(w.t, page)
	var script strings.Builder
	for _, c := range all {
		script.WriteString("{\n" + here.Replace(c.text) + "} 2>&1")
		if !c.mayFail() {
			script.WriteString(" || exit 1")
		}
		script.WriteString("\necho '---'\n")
	}
	cmd := exec.CommandContext(w.t.Context(), "/bin/bash", "-c", script.String())
	cmd.Dir = w.administers()
	cmd.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(cmd.Dir, "kubeconfig"),
		"PATH="+cmd.Dir+":"+bin+":"+os.Getenv("PATH"), "OPENAI_API_KEY=sk-e2e-secret-key-0123456789")
	printed, err := cmd.CombinedOutput()
	outputs := strings.Split(string(printed), "---\n")
	for i, c := range all[:min(len(all), len(outputs))] {
		if want := shown(c.output); !want.MatchString(outputs[i]) {
			w.t.Fatalf("%s printed\n%s\nwhich does not match\n%s", c.text, outputs[i], want)
		}
	}
	if err != nil {
		w.t.Fatalf("%s: %v\n%s", all[len(outputs)-1].text, err, outputs[len(outputs)-1])
	}
}

// administers creates a folder with kubectl, an administrator's kubeconfig, and the manifest of a release.
func (w *world) administers() (dir string) {
	w.t.Helper()
	dir = w.t.TempDir()
	cfg, err := clientcmd.LoadFromFile(os.Getenv("KUBECONFIG"))
	check.OK(w.t, err)
	check.OK(w.t, clientcmd.WriteToFile(*cfg, filepath.Join(dir, "kubeconfig")))
	kubectl, err := exec.LookPath(cmp.Or(os.Getenv("KUBECTL"), "kubectl"))
	check.OK(w.t, err)
	check.OK(w.t, os.Symlink(kubectl, filepath.Join(dir, "kubectl")))
	overlay := testcluster.Path("hack", "overlay.sh")
	text, err := exec.CommandContext(w.t.Context(), "/bin/bash", "-c", `"$0" kustomize "${1%/*}/../$("$1")"`, kubectl,
		overlay).Output()
	check.OK(w.t, err)
	check.OK(w.t, os.WriteFile(filepath.Join(dir, "install.yaml"), text, 0o600))
	return dir
}

var (
	spaces    = regexp.MustCompile(`\s+`)
	durations = regexp.MustCompile(`\b\d+[smhd]\b`)
	callIDs   = regexp.MustCompile(`call_\w+`)
)

// shown matches output as a page shows it: three dots stand for anything; ages, ids of calls and spaces may differ.
func shown(output string) *regexp.Regexp {
	text := regexp.QuoteMeta(strings.TrimSpace(output))
	text = strings.ReplaceAll(text, `\.\.\.`, `(?s:.*)`)
	text = spaces.ReplaceAllString(text, `\s+`)
	text = durations.ReplaceAllString(text, `\d+[smhd]\w*`)
	return regexp.MustCompile(callIDs.ReplaceAllString(text, `call_\w+`))
}

func TestTeamsFirstDayWorksAsWritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t, modelserver.Script{Rules: []modelserver.Rule{
		{Match: modelserver.Match{LastUserText: "a Pod"},
			Reply: say("A Pod is a group of containers that share a network and storage.")},
		{Match: modelserver.Match{LastUserText: "a Node"}, Reply: say("A Node is a machine that runs Pods.")},
		{Match: modelserver.Match{ToolResults: new(0)}, Reply: modelserver.Reply{Steps: []modelserver.Step{
			modelserver.Call("execute", `{"command":"df -h ."}`),
		}}},
		{Reply: say("Yes, there is: look at the column Avail.")},
	}})
	w.deletesNamespaces("first-day")
	w.follow("first-day.md", strings.NewReplacer("provider: openai\n", "provider: openai\n  baseURL: "+w.modelURL+"\n",
		"busybox:1.37", toolbox))
}

// TestLocalModelTutorialWorksAsWritten has the scripted model in place of the servers: it speaks their protocol.
func TestLocalModelTutorialWorksAsWritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t, modelserver.Script{Rules: []modelserver.Rule{
		{Match: modelserver.Match{LastUserText: "Say hello."}, Reply: say("Hello!")},
		{Reply: say("Hello again!")},
	}})
	w.deletesNamespaces("local-model", "models")
	w.follow("local-model.md", strings.NewReplacer(
		"image: ollama/ollama:0.12.6", "image: "+image+"\n        command: [/scripted-model, '--listen=:11434']",
		"kubectl -n models exec deployment/ollama -- ollama pull qwen3:4b", "true",
		"http://ollama.models.svc:11434/v1", w.modelURL, "http://vllm.models.svc:8000/v1", w.modelURL))
}

// deletesNamespaces deletes the namespaces of a tutorial that failed.
func (w *world) deletesNamespaces(names ...string) {
	w.t.Cleanup(func() {
		for _, name := range names {
			_ = c.Delete(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
	})
}

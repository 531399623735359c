// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/runner"
	"parley.dev/parley/test/modelserver"
)

// reroute sends what is for the provider to the scripted one.
type reroute struct{ p *pod }

func (r reroute) RoundTrip(request *http.Request) (*http.Response, error) {
	to, err := url.Parse(r.p.url)
	if err != nil {
		return nil, err
	}
	request = request.Clone(request.Context())
	request.URL.Scheme, request.URL.Host, request.Host = to.Scheme, to.Host, to.Host
	return http.DefaultTransport.RoundTrip(request)
}

// startFetchingPod starts a pod with a ChatModelConfig, fetching, whose provider fetches files itself.
func startFetchingPod(t *testing.T, script modelserver.Script) *pod {
	t.Helper()
	p := startPod(t, script, func(p *pod, o *runner.Options) { o.HTTP = &http.Client{Transport: reroute{p}} })
	config := modelConfig(p.ns, "fetching", "")
	config.Spec.Provider = v1alpha1.ProviderAnthropic
	create(t, config)
	return p
}

const signedURL = "https://files.example.com/c.png?v=1&X-Amz-Signature=5f2a9c77e1"

// show lets the chat be asked about a file that is at a URL.
func (c *conversation) show(name string) {
	c.t.Helper()
	create(c.t, &v1alpha1.ChatMessage{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.ns, Name: name},
		Spec: v1alpha1.ChatMessageSpec{ChatRef: v1alpha1.ChatReference{Name: c.chat.Name}, Parts: []v1alpha1.MessagePart{
			{Type: v1alpha1.PartText, Text: new("what is this?")},
			{Type: v1alpha1.PartFile, File: &v1alpha1.MessageFile{Name: "c.png", MediaType: "image/png", URL: signedURL}},
		}},
	})
	c.write(func(s *v1alpha1.ChatStatus) {
		s.Turn = &v1alpha1.TurnStatus{Message: name}
		s.History = v1alpha1.HistoryStatus{Version: 1, Head: name, Length: 1}
		s.Generation = c.assignment(v1alpha1.ActionGenerateAssistant, 1)
	})
}

// plain is JSON whose URLs are written as they are.
func plain(body string) string { return strings.ReplaceAll(body, `\u0026`, "&") }

func TestAURLReachesTheProviderAndNoRecordingOfItsSecrets(t *testing.T) {
	p := startFetchingPod(t, reply(modelserver.Say("A cat.")))
	c := p.newChat("c", debugged)
	c.config = "fetching"
	c.show("one")
	if got := textOf(t, c.result()); got != "A cat." {
		t.Errorf("got %s", got)
	}
	var sent struct {
		Messages []struct {
			Content []struct{ Source map[string]string }
		}
	}
	if err := json.Unmarshal([]byte(p.asked()), &sent); err != nil {
		t.Fatal(err)
	}
	if source := sent.Messages[0].Content[1].Source; len(source) != 2 || source["type"] != "url" ||
		source["url"] != signedURL {
		t.Errorf("sent %s", p.asked())
	}
	const clean = "https://files.example.com/c.png?v=1&X-Amz-Signature=[redacted]"
	step := p.recorded(v1alpha1.DebugCompleted, 1)
	file := step.Request.Messages[0].Parts[1]
	if file.Type != v1alpha1.DebugFile || file.Text != clean || file.Bytes != 0 || file.Name != "c.png" {
		t.Errorf("recorded %+v", file)
	}
	// What is recorded is what was sent, but for the secret.
	if body := step.Attempts[0].Exchanges[0].RequestBody; body != strings.ReplaceAll(plain(p.asked()), signedURL, clean) {
		t.Errorf("recorded %s", body)
	}
}

func TestAURLCanBeSummarised(t *testing.T) {
	p := startFetchingPod(t, summarises(modelserver.Say("They looked at a cat.")))
	c := p.newChat("c", nil)
	c.config = "fetching"
	c.show("one")
	c.commit(c.result(), "")
	summary := c.compact(v1alpha1.CompactionManual)
	if got := textOf(t, summary); got != "They looked at a cat." || !strings.Contains(plain(p.asked()), signedURL) ||
		!strings.Contains(p.asked(), "Write a summary") {
		t.Errorf("got %s when asked %s", got, p.asked())
	}
}

func TestAURLThatCannotBeFetchedFailsNoTurn(t *testing.T) {
	script := reply(modelserver.Say("I cannot see it."))
	script.Rules = append([]modelserver.Rule{{Times: 1, Reply: modelserver.Reply{Fault: &modelserver.Fault{
		Kind: modelserver.FaultStatus, Status: http.StatusBadRequest, Message: "Unable to download the file " + signedURL +
			". Please verify the URL and try again.",
	}}}}, script.Rules...)
	p := startFetchingPod(t, script)
	c := p.newChat("c", debugged)
	c.config = "fetching"
	c.show("one")
	m := c.result()
	if got := textOf(t, m); got != "I cannot see it." || !strings.Contains(p.asked(), "could not fetch it from its URL") ||
		strings.Contains(p.asked(), signedURL) {
		t.Errorf("got %s when asked %s", got, p.asked())
	}
	if w := m.Spec.Generation.Warnings; len(w) != 1 ||
		!strings.HasPrefix(w[0], "file was left out: c.png: the provider of the model could not fetch it") {
		t.Errorf("warned of %q", w)
	}
	step := p.recorded(v1alpha1.DebugCompleted, 1)
	raw, err := json.Marshal(step)
	if exchanges := step.Attempts[0].Exchanges; err != nil || len(exchanges) != 2 ||
		strings.Contains(string(raw), "5f2a9c77e1") {
		t.Errorf("recorded %s: %v", raw, err)
	}
}

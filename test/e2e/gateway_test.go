// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"parley.dev/parley/internal/modelserver"
	"parley.dev/parley/internal/testing/localnode"
)

// gatewayClient is one that knows nothing of Kubernetes but a token, and talks to the gateway.
type gatewayClient struct {
	*world
	url, token string
}

// byGateway forwards a port to the gateway, as docs/stream.md says.
func (w *world) byGateway() *gatewayClient {
	w.t.Helper()
	forward := exec.CommandContext(w.t.Context(), cmp.Or(os.Getenv("KUBECTL"), "kubectl"), "--kubeconfig", w.kubeconfig,
		"--namespace", "parley-system", "port-forward", "service/parley-gateway", ":80")
	out, err := forward.StdoutPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	forward.Stderr = os.Stderr
	if err := forward.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		_ = forward.Process.Kill()
		_ = forward.Wait() // It was killed.
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	_, port, _ := strings.Cut(line, "Forwarding from 127.0.0.1:")
	port, _, ok := strings.Cut(port, " ")
	if err != nil || !ok {
		w.t.Fatalf("the port is not forwarded: %q, %v", line, err)
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", w.kubeconfig)
	if err != nil {
		w.t.Fatal(err)
	}
	return &gatewayClient{w, "http://127.0.0.1:" + port + "/v1alpha1/namespaces/" + w.ns, cfg.BearerToken}
}

// does makes a request, which must be answered with the status, and returns the fields of the answer.
func (p *gatewayClient) does(status int, method, path, body string) (fields map[string]any) {
	p.t.Helper()
	response := p.ask(method, path, body)
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != status {
		p.t.Fatalf("%s %s: %s %s, %v", method, path, response.Status, raw, err)
	}
	if status == http.StatusNoContent {
		return nil
	}
	if err := json.Unmarshal(raw, &fields); err != nil {
		p.t.Fatal(err)
	}
	return fields
}

func (p *gatewayClient) ask(method, path, body string) *http.Response {
	p.t.Helper()
	request, err := http.NewRequestWithContext(p.t.Context(), method, p.url+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+p.token)
	request.Header.Set("Content-Type", "application/json")
	if body == "" {
		request.Body, request.ContentLength = http.NoBody, 0
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		p.t.Fatal(err)
	}
	return response
}

// hears follows the chat until an event of the stream says the words.
func (p *gatewayClient) hears(chat, words string) {
	p.t.Helper()
	response := p.ask("GET", "/chats/"+chat+"/stream", "")
	defer func() { _ = response.Body.Close() }()
	end := time.AfterFunc(time.Minute, func() { _ = response.Body.Close() })
	defer end.Stop()
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "data: ") && strings.Contains(lines.Text(), words) {
			return
		}
	}
	p.t.Fatalf("nobody has said %q", words)
}

func TestAProgramTalksToAChatByTheGatewayAlone(t *testing.T) {
	localnode.Needed(t)
	w := newWorld(t, modelserver.Script{Rules: []modelserver.Rule{
		{Times: 1, Reply: modelserver.Reply{Steps: []modelserver.Step{modelserver.Say("Hello.")}}},
		{Times: 1, Reply: words(300, 100*time.Millisecond)},
		{Reply: modelserver.Reply{Steps: []modelserver.Step{modelserver.Say("Done.")}}},
	}})
	p := w.byGateway()
	p.does(http.StatusCreated, "POST", "/chats", `{"name":"c","spec":{"prompt":"Hi."}}`)
	p.hears("c", "Hello.")
	w.ready("c", 2)
	p.does(http.StatusCreated, "POST", "/chats/c/messages", `{"name":"long","content":"Tell me a long story."}`)
	p.does(http.StatusConflict, "POST", "/chats/c/messages", `{"name":"long","content":"Tell me a long story."}`)
	p.hears("c", "wordc")
	p.does(http.StatusCreated, "POST", "/chats/c/messages", `{"name":"next","content":"And then?"}`)
	if got := p.does(http.StatusOK, "POST", "/chats/c/requests", `{"kind":"Interrupt"}`); got["outcome"] != "Done" {
		t.Errorf("the interrupt is %v", got)
	}
	w.ready("c", 6)
	p.does(http.StatusOK, "PATCH", "/chats/c/messages/next", `{"content":"And then what?"}`)
	w.eventually("the edited message is answered", func() bool { return len(w.requests()) == 4 })
	w.ready("c", 6)
	if listed := p.does(http.StatusOK, "GET", "/chats", ""); !strings.Contains(fmt.Sprint(listed), "Done.") {
		t.Errorf("listed are %v", listed)
	}
	w.nothingLeft("c")
	p.does(http.StatusNoContent, "DELETE", "/chats/c", "")
}

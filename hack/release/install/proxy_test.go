// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// proxyConfig is nginx with TLS in front of the gateway. As in docs/how-to/helm.md, it does not buffer, but it has
// nginx's default limit of 60 seconds for a connection that sends nothing.
const proxyConfig = `
daemon off;
pid %[1]s/nginx.pid;
error_log %[1]s/nginx-errors.log;
events {}
http {
  log_format requests "$uri $request_time";
  access_log %[1]s/nginx-requests.log requests;
  client_body_temp_path %[1]s/nginx-bodies;
  proxy_temp_path %[1]s/nginx-answers;
  server {
    listen %[2]s:8443 ssl;
    ssl_certificate %[3]s;
    ssl_certificate_key %[4]s;
    location / {
      proxy_pass http://%[5]s:8080;
      proxy_http_version 1.1;
      proxy_buffering off;
    }
  }
}
`

func TestIdleStreamPassesProxyUnbuffered(t *testing.T) {
	newNamespace(t, system)
	newWorld(t, "chats")
	byHelm("gateway: {ingress: {enabled: true, className: nginx, host: " + chatHost + ", tlsSecretName: chat-tls}}").set(t)
	askModel(t, "chats")
	awaitAnswer(t, "chats")

	address := kubectl(t, "-n", system, "get", "pods", "-l=app.kubernetes.io/component=gateway",
		"-o=jsonpath={.items[0].status.podIP}")
	config := write(t, temporary, "nginx.conf",
		fmt.Sprintf(proxyConfig, temporary, nodeIP, certFile(), keyFile(), address))
	const url = "https://" + chatHost + ":8443"
	if err := start(t.Context(), url, "nginx", "-c", config); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	send := exec.CommandContext(ctx, os.Getenv("KUBECTL_CHAT"), "send", "c", "Speak slowly.", "-o=json",
		"--gateway="+url, "--gateway-ca="+certFile())
	send.Env, send.Stderr = append(os.Environ(), "KUBECONFIG="+person(t, "chats")), os.Stderr
	out, err := send.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := send.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	awaitLine(t, lines, "First. ")
	if modelIsDone(t, "chats") {
		t.Error("the first part was shown after the last one was sent")
	}
	awaitLine(t, lines, "Last.")
	for lines.Scan() { // Until the program ends.
	}
	if err := send.Wait(); err != nil {
		t.Errorf("kubectl chat send: %v", err)
	}
	var seconds float64
	eventually(t, "nginx has logged the stream", func() bool {
		requests, err := os.ReadFile(filepath.Join(temporary, "nginx-requests.log"))
		_, stream, _ := strings.Cut(string(requests), "/chats/c/stream ")
		n, _ := fmt.Sscan(stream, &seconds)
		return err == nil && n == 1
	})
	if seconds < 70 {
		t.Errorf("the proxy or the gateway ended the stream after %g seconds, before the last part", seconds)
	}
}

// person writes a kubeconfig with a token of an account that may chat in the namespace, and has the roles.
func person(t *testing.T, namespace string, roles ...string) string {
	t.Helper()
	kubectl(t, "-n", namespace, "create", "serviceaccount", "person")
	for i, role := range append(roles, "parley-chat-user") {
		kubectl(t, "-n", namespace, "create", "rolebinding", fmt.Sprint("person", i), "--clusterrole="+role,
			"--serviceaccount="+namespace+":person")
	}
	token := kubectl(t, "-n", namespace, "create", "token", "person")
	own := write(t, t.TempDir(), "kubeconfig", kubectl(t, "config", "view", "--raw", "--flatten"))
	kubectl(t, "--kubeconfig="+own, "config", "set-credentials", "person", "--token="+token)
	kubectl(t, "--kubeconfig="+own, "config", "set-context", "--current", "--user=person", "--namespace="+namespace)
	return own
}

// awaitLine reads lines until one has the text.
func awaitLine(t *testing.T, lines *bufio.Scanner, text string) {
	t.Helper()
	read := ""
	for lines.Scan() {
		read += lines.Text() + "\n"
		if strings.Contains(lines.Text(), text) {
			return
		}
	}
	t.Fatalf("no line has %q:\n%s", text, read)
}

// modelIsDone reports whether the model has ended its newest reply.
func modelIsDone(t *testing.T, namespace string) bool {
	t.Helper()
	var requests []struct {
		Ended time.Time `json:"ended"`
	}
	text := kubectl(t, "get", "--raw", "/api/v1/namespaces/"+namespace+"/pods/model:8080/proxy/_control/requests")
	if err := json.Unmarshal([]byte(text), &requests); err != nil || len(requests) == 0 {
		t.Fatalf("reading the requests of the model: %v", err)
	}
	return !requests[len(requests)-1].Ended.IsZero()
}

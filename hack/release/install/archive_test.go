// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// s3Address is where test/archive/s3server serves its bucket, to the pods, too.
const s3Address = nodeIP + ":7070"

func TestArchivedChatReturnsFromBucket(t *testing.T) {
	if err := start(t.Context(), "http://"+s3Address, os.Getenv("S3_SERVER"), t.TempDir(), s3Address); err != nil {
		t.Fatal(err)
	}
	newNamespace(t, system)
	newWorld(t, "chats")
	kubectl(t, "-n", system, "create", "secret", "generic", "parley-archive", "--from-literal=AWS_ACCESS_KEY_ID=parley",
		"--from-literal=AWS_SECRET_ACCESS_KEY=right-secret")
	byHelm(`archive: {url: "s3://archives?region=us-east-1&use_path_style=true&endpoint=http://` + s3Address + `"}`).set(t)
	askModel(t, "chats")
	awaitAnswer(t, "chats")

	me := person(t, "chats", "parley-chat-admin", "parley-redact", "parley-restore")
	kubectl(t, "-n", system, "create", "rolebinding", "person", "--role=parley-gateway-access",
		"--serviceaccount=chats:person")
	run := func(input, want string, args ...string) {
		t.Helper()
		command := exec.CommandContext(context.WithoutCancel(t.Context()), os.Getenv("KUBECTL_CHAT"), args...)
		command.Env, command.Stdin = append(os.Environ(), "KUBECONFIG="+me), strings.NewReader(input)
		if out, err := command.CombinedOutput(); err != nil || !strings.Contains(string(out), want) {
			t.Fatalf("kubectl chat %v: %v\ngot  %s\nwant %s", args, err, out, want)
		}
	}
	// It is too large for a message: the gateway stores it, and the generation pod reads it there. The local cluster has
	// no Services.
	gateway := kubectl(t, "-n", system, "get", "pods", "-l=app.kubernetes.io/component=gateway",
		"-o=jsonpath={.items[0].status.podIP}")
	helm(t, "upgrade", "parley", chart(), "--namespace="+system, "--reset-then-reuse-values", "--wait",
		"--set=manager.extraArgs={--gateway-url=http://"+gateway+":8080}")
	report := write(t, t.TempDir(), "report.txt", "only the file says this\n"+strings.Repeat("a line\n", 1<<17))
	run("", "Received.", "send", "c", "Read it.", "--file", report)
	kubectl(t, "-n", "chats", "patch", "chat", "c", "--type=merge",
		`--patch={"spec": {"retention": {"deleteAfterSeconds": 60, "archive": true}}}`)
	eventually(t, "retention has deleted the chat", func() bool {
		return kubectl(t, "-n", "chats", "get", "chat", "c", "--ignore-not-found", "-o=name") == ""
	})

	archives := func(input, want string, args ...string) {
		t.Helper()
		run(input, want, append([]string{"archives"}, args...)...)
	}
	archives("", "TITLE", "list")
	archives("", "It works.", "get", "c")
	archives("It works.", "spec.parts.text", "redact", "c")
	archives("", "Chat c in namespace chats restored", "restore", "c")
	if got := kubectl(t, "-n", "chats", "get", "chat", "c", "-o=jsonpath={.status.lastReply}"); got !=
		"********* Received." {
		t.Errorf("the last reply of the restored chat is %q", got)
	}
	archives("", "archive of chat c deleted", "delete", "c")
	archives("", "No archives found", "list")
}

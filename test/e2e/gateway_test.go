// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/client"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/localnode"
	"parley.dev/parley/test/modelserver"
)

// outside is where a program finds the namespace that knows nothing of Kubernetes but a token.
type outside struct {
	gateway, namespace, token string
}

// byGateway forwards a port to a gateway, as docs/reference/stream.md says.
func (w *world) byGateway() outside {
	w.t.Helper()
	return w.forward("service/parley-gateway", ":80")
}

// byGatewayPod forwards a port to the gateway in a pod.
func (w *world) byGatewayPod(name string) outside {
	w.t.Helper()
	return w.forward("pod/"+name, ":8080")
}

func (w *world) forward(to, port string) outside {
	w.t.Helper()
	forward := exec.CommandContext(w.t.Context(), cmp.Or(os.Getenv("KUBECTL"), "kubectl"), "--kubeconfig", w.kubeconfig,
		"--namespace", "parley-system", "port-forward", to, port)
	out, err := forward.StdoutPipe()
	check.OK(w.t, err)
	forward.Stderr = os.Stderr
	check.OK(w.t, forward.Start())
	w.t.Cleanup(func() {
		_ = forward.Process.Kill()
		_ = forward.Wait() // It was killed.
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	_, after, _ := strings.Cut(line, "Forwarding from 127.0.0.1:")
	local, _, ok := strings.Cut(after, " ")
	if err != nil || !ok {
		w.t.Fatalf("the port is not forwarded: %q, %v", line, err)
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", w.kubeconfig)
	check.OK(w.t, err)
	return outside{"http://127.0.0.1:" + local, w.ns, cfg.BearerToken}
}

// client is the namespace for a program in Go.
func (o outside) client() client.Namespace {
	gateway := &client.Client{URL: o.gateway, Token: func(context.Context) (string, error) { return o.token, nil }}
	return gateway.Namespace(o.namespace)
}

// hears follows the chat until an event of the stream says the words.
func (w *world) hears(chats client.Namespace, chat, words string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	for e, err := range chats.Follow(ctx, chat, client.FollowOptions{}) {
		if err != nil {
			w.t.Fatalf("nobody has said %q: %v", words, err)
		}
		if strings.Contains(string(e.Data), words) {
			return
		}
	}
}

func TestProgramUsesChatThroughGatewayOnly(t *testing.T) {
	localnode.Needed(t)
	w := newWorld(t, modelserver.Script{Rules: []modelserver.Rule{
		{Times: 1, Reply: say("Hello.")},
		{Times: 1, Reply: words(300, 100*time.Millisecond)},
		{Reply: say("Done.")},
	}})
	chats, ctx := w.byGateway().client(), t.Context()
	if _, err := chats.CreateChat(ctx, client.NewChat{Name: "c", Spec: v1beta1.ChatSpec{Prompt: "Hi."}}); err != nil {
		t.Fatal(err)
	}
	w.hears(chats, "c", "Hello.")
	w.ready("c", 2)
	long := client.NewMessage{Name: "long", Content: "Tell me a long story."}
	if _, err := chats.Send(ctx, "c", long); err != nil {
		t.Fatal(err)
	}
	_, err := chats.Send(ctx, "c", long)
	if refused, ok := errors.AsType[*client.Error](err); !ok || refused.Reason != "AlreadyExists" {
		t.Errorf("it is said twice: %v", err)
	}
	w.hears(chats, "c", "wordc")
	if _, err := chats.Send(ctx, "c", client.NewMessage{Name: "next", Content: "And then?"}); err != nil {
		t.Fatal(err)
	}
	if got, err := chats.Request(ctx, "c", client.Request{Kind: v1beta1.RequestInterrupt}); err != nil ||
		got.Outcome != v1beta1.RequestDone {
		t.Errorf("the interrupt is %+v, %v", got, err)
	}
	w.ready("c", 6)
	if _, err := chats.EditMessage(ctx, "c", "next", client.Edit{Content: "And then what?"}); err != nil {
		t.Fatal(err)
	}
	w.eventually("the edited message is answered", func() bool { return len(w.requests()) == 4 })
	w.ready("c", 6)
	if page, err := chats.ListChats(ctx, 0, ""); err != nil || len(page.Chats) != 1 || page.Chats[0].LastReply != "Done." {
		t.Errorf("listed are %+v, %v", page, err)
	}
	w.nothingLeft("c")
	if err := chats.DeleteChat(ctx, "c"); err != nil {
		t.Error(err)
	}
}

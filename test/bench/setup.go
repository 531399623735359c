// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/controllers"
	"parley.dev/parley/internal/kube/apiclient"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/modelserver"
)

// namespace that the bench works in. hack/bench.sh creates it, with the model and the bench's own account.
const namespace = "bench"

type bench struct {
	config  *rest.Config
	client  client.Client
	core    kubernetes.Interface
	model   string
	gateway string
	token   string
	follow  *followers
}

func newBench(ctx context.Context, model string) (*bench, error) {
	cfg, err := rest.InClusterConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the cluster: %w", err)
	}
	cfg.QPS = -1
	b := &bench{config: cfg, model: model}
	scheme := controllers.Scheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil { // For the floor.
		return nil, fmt.Errorf("building the scheme: %w", err)
	}
	if b.client, err = client.New(cfg, client.Options{Scheme: scheme}); err != nil {
		return nil, fmt.Errorf("creating a client: %w", err)
	}
	if b.core, err = kubernetes.NewForConfig(cfg); err != nil {
		return nil, fmt.Errorf("creating a client: %w", err)
	}
	if b.token, err = b.tokenOf(ctx, namespace, "bench"); err != nil {
		return nil, err
	}
	if b.gateway, err = b.findGateway(ctx); err != nil {
		return nil, err
	}
	parley, err := apiclient.New(cfg, "parley-bench")
	if err != nil {
		return nil, err
	}
	if b.follow, err = followChats(ctx, parley); err != nil {
		return nil, err
	}
	return b, b.create(ctx, b.modelConfig(namespace))
}

// tokenOf is a token of a service account.
func (b *bench) tokenOf(ctx context.Context, namespace, account string) (string, error) {
	request, err := b.core.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, account,
		&authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("asking for a token: %w", err)
	}
	return request.Status.Token, nil
}

// modelConfig has all chats of the namespace answered by the scripted model.
func (b *bench) modelConfig(namespace string) *v1beta1.ChatModelConfig {
	return &v1beta1.ChatModelConfig{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "default"},
		Spec: v1beta1.ChatModelConfigSpec{
			Default: true, Provider: v1beta1.ProviderOpenAICompatible, Model: "scripted", BaseURL: "http://" + b.model + "/v1",
		},
	}
}

func (b *bench) findGateway(ctx context.Context) (string, error) {
	pods, err := b.core.CoreV1().Pods("parley-system").
		List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=gateway"})
	if err != nil {
		return "", fmt.Errorf("finding the gateway: %w", err)
	}
	for i := range pods.Items {
		if p := &pods.Items[i]; p.Status.PodIP != "" && p.DeletionTimestamp == nil {
			return "http://" + p.Status.PodIP + ":8080", nil
		}
	}
	return "", fmt.Errorf("no gateway runs in namespace parley-system")
}

func meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: namespace}
}

func (b *bench) create(ctx context.Context, o client.Object) error {
	if err := b.client.Create(ctx, o); err != nil {
		return fmt.Errorf("creating %s: %w", o.GetName(), err)
	}
	return nil
}

func (b *bench) say(ctx context.Context, chat, name string) error {
	return b.create(ctx, question(namespace, chat, name))
}

func question(namespace, chat, name string) *v1beta1.ChatMessage {
	return chattest.In(namespace, chattest.User(chat, name, chattest.Content("What do you see?")))
}

// script tells the model what to say from now on.
func (b *bench) script(ctx context.Context, s modelserver.Script) error {
	body, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("writing the script: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, "http://"+b.model+"/_control/script",
		bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("scripting the model: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("scripting the model: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("scripting the model: %s", response.Status)
	}
	return nil
}

// modelDelay is what the model waits before its first part, as a real one does; it is taken off the figures.
const modelDelay = 50 * time.Millisecond

func answer(delay time.Duration) modelserver.Script {
	return modelserver.Script{Rules: []modelserver.Rule{{Reply: modelserver.Reply{
		Steps: []modelserver.Step{modelserver.Say("I ", "see ", "a ", "cluster.")}, DelayBefore: modelserver.Duration(delay),
	}}}}
}

func answerWithTool(tool, arguments string) modelserver.Script {
	return answerWithCalls(modelserver.ToolCall{Name: tool, Arguments: json.RawMessage(arguments)})
}

func answerWithCalls(calls ...modelserver.ToolCall) modelserver.Script {
	s := answer(modelDelay)
	s.Rules = append([]modelserver.Rule{{
		Match: modelserver.Match{ToolResults: new(0)},
		Reply: modelserver.Reply{
			Steps:       []modelserver.Step{modelserver.Say("Wait. "), {ToolCalls: calls}},
			DelayBefore: modelserver.Duration(modelDelay),
		},
	}}, s.Rules...)
	return s
}

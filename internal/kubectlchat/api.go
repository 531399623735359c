// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package kubectlchat

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/apiclient"
)

// newRaw returns a client of Parley's resources below the typed one.
func newRaw(cfg *rest.Config) (rest.Interface, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.UserAgent = "kubectl-chat"
	cfg.APIPath = "/apis"
	cfg.GroupVersion = &v1alpha1.GroupVersion
	cfg.ContentType = runtime.ContentTypeJSON
	cfg.NegotiatedSerializer = serializer.NewCodecFactory(apiclient.Scheme).WithoutConversion()
	raw, err := rest.RESTClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("creating a client of %s: %w", v1alpha1.GroupVersion, err)
	}
	return raw, nil
}

// objects are Parley's in one namespace.
type objects struct {
	namespace string
	typed     *apiclient.Client
	raw       rest.Interface // what typed has no methods for
}

func (o objects) messages() apiclient.Resource[v1alpha1.ChatMessage, v1alpha1.ChatMessageList] {
	return o.typed.Messages(o.namespace)
}

func (o objects) chats() apiclient.Resource[v1alpha1.Chat, v1alpha1.ChatList] {
	return o.typed.Chats(o.namespace)
}

// annotate sets an annotation of a chat.
func (o objects) annotate(ctx context.Context, chat, key, value string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{key: value}}})
	if err != nil {
		return fmt.Errorf("encoding the annotation: %w", err)
	}
	err = o.raw.Patch(types.MergePatchType).Namespace(o.namespace).Resource("chats").Name(chat).Body(patch).Do(ctx).Error()
	if err != nil {
		return fmt.Errorf("annotating chat %s: %w", chat, err)
	}
	return nil
}

// cutIn lets a message cut in.
func (o objects) cutIn(ctx context.Context, message string) (*v1alpha1.ChatMessage, error) {
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"whenBusy": v1alpha1.WhenBusyInterrupt}})
	if err != nil {
		return nil, fmt.Errorf("encoding the change: %w", err)
	}
	out := new(v1alpha1.ChatMessage)
	err = o.raw.Patch(types.MergePatchType).Namespace(o.namespace).Resource("chatmessages").Name(message).Body(patch).
		Do(ctx).Into(out)
	if err != nil {
		return nil, fmt.Errorf("changing ChatMessage %s: %w", message, err)
	}
	return out, nil
}

func (o objects) createApproval(ctx context.Context, a *v1alpha1.ToolApproval) (*v1alpha1.ToolApproval, error) {
	out := new(v1alpha1.ToolApproval)
	if err := o.raw.Post().Namespace(o.namespace).Resource("toolapprovals").Body(a).Do(ctx).Into(out); err != nil {
		return nil, fmt.Errorf("creating the ToolApproval: %w", err)
	}
	return out, nil
}

func (o objects) watchApprovals(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.Watch = true
	return o.raw.Get().Namespace(o.namespace).Resource("toolapprovals").VersionedParams(&options, metav1.ParameterCodec).
		Watch(ctx)
}

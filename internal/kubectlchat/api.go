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

// annotate sets an annotation of a chat.
func (s *session) annotate(ctx context.Context, chat, key, value string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{key: value}}})
	if err != nil {
		return fmt.Errorf("encoding the annotation: %w", err)
	}
	err = s.raw.Patch(types.MergePatchType).Namespace(s.namespace).Resource("chats").Name(chat).Body(patch).Do(ctx).Error()
	if err != nil {
		return fmt.Errorf("annotating chat %s: %w", chat, err)
	}
	return nil
}

func (s *session) createApproval(ctx context.Context, a *v1alpha1.ToolApproval) (*v1alpha1.ToolApproval, error) {
	out := new(v1alpha1.ToolApproval)
	if err := s.raw.Post().Namespace(s.namespace).Resource("toolapprovals").Body(a).Do(ctx).Into(out); err != nil {
		return nil, fmt.Errorf("creating the ToolApproval: %w", err)
	}
	return out, nil
}

func (s *session) watchApprovals(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.Watch = true
	return s.raw.Get().Namespace(s.namespace).Resource("toolapprovals").VersionedParams(&options, metav1.ParameterCodec).
		Watch(ctx)
}

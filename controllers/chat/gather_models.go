// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/chatclass"
	"parley.dev/parley/internal/chat/modelconfig"
	"parley.dev/parley/internal/chat/plan"
	"parley.dev/parley/internal/pods/modellimits"
)

// modelReader reads which ChatModelConfigs answer a chat.
type modelReader struct {
	cache, live client.Reader
	// calls knows sooner than the cache that a provider asked to wait.
	calls *modellimits.Gate
}

// namedConfig is the ChatModelConfig of that name; nil if there is none. One manifest may hold it and what names it, so
// that the cache may not show it yet, or show it disabled: then the API server is asked.
func (r *modelReader) namedConfig(ctx context.Context, s *scope, name string) (*v1beta1.ChatModelConfig, error) {
	if config := modelconfig.Find(s.configs, name); config != nil && !config.Spec.Disabled || s.confirmed[name] {
		return config, nil
	}
	var config v1beta1.ChatModelConfig
	err := r.live.Get(ctx, types.NamespacedName{Namespace: s.facts.Chat.Namespace, Name: name}, &config)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading ChatModelConfig %s: %w", name, err)
	}
	s.configs = slices.DeleteFunc(s.configs, func(c v1beta1.ChatModelConfig) bool { return c.Name == name })
	if err == nil {
		s.configs = append(s.configs, config)
		r.addRetryAfter(s.configs[len(s.configs)-1:])
	}
	if s.confirmed == nil {
		s.confirmed = map[string]bool{}
	}
	s.confirmed[name] = true
	return modelconfig.Find(s.configs, name), nil
}

// addRetryAfter adds the waits that the cache does not show yet.
func (r *modelReader) addRetryAfter(configs []v1beta1.ChatModelConfig) {
	for i := range configs {
		config := &configs[i]
		if after := r.calls.RetryAfter(client.ObjectKeyFromObject(config)); after.After(config.RetryAfter()) {
			config.Status.RetryAfter, config.Status.RetryAfterGeneration = new(metav1.NewTime(after)), config.Generation
		}
	}
}

// readModel resolves the ChatModelConfig that answers the chat.
func (r *modelReader) readModel(ctx context.Context, s *scope) error {
	if s.facts.Blocked != nil { // Without its class it is not known who may answer.
		return nil
	}
	var configs v1beta1.ChatModelConfigList
	if err := r.cache.List(ctx, &configs, client.InNamespace(s.facts.Chat.Namespace)); err != nil {
		return fmt.Errorf("listing ChatModelConfigs: %w", err)
	}
	s.configs = configs.Items
	r.addRetryAfter(s.configs)
	if ref := s.facts.Chat.Spec.ModelConfigRef; ref != nil {
		if _, err := r.namedConfig(ctx, s, ref.Name); err != nil {
			return err
		}
	}
	config, missing := modelconfig.Resolve(s.configs, &s.facts.Chat.Spec, s.modelNamedBy())
	if missing != nil {
		s.facts.Blocked = missing
		return nil
	}
	s.chooseModel(config)
	return nil
}

// chooseModel lets the ChatModelConfig answer the chat, if it may.
func (s *scope) chooseModel(config *v1beta1.ChatModelConfig) {
	f := &s.facts
	if standsIn(s, config) {
		why := modelconfig.Unavailable(s.configs, f.Chat.Spec.ModelConfigRef.Name, s.modelNamedBy())
		if why.Reason == v1beta1.ErrorModelConfigNotFound &&
			f.Now.Sub(f.Chat.CreationTimestamp.Time) < plan.ManifestPatience {
			f.Blocked = why // Its manifest may bring it yet.
			return
		}
		f.FellBack = why
	}
	if refused := chatclass.ModelRefused(f.Class.Of(), config.Name, ""); refused != nil {
		f.Blocked, f.FellBack = refused, nil
		return
	}
	f.Model = plan.ModelOf(s.configs, config, f.Chat)
}

// modelNamedBy is the field that names the ChatModelConfig of the chat: its own, or that of its class.
func (s *scope) modelNamedBy() string {
	class, ref := s.facts.Class.Of(), s.facts.Chat.Spec.ModelConfigRef
	if class != nil && ref != nil && ref == class.Spec.Defaults.ModelConfigRef { // Not a reference that says the same.
		return "spec.defaults.modelConfigRef of ChatClass " + class.Name
	}
	return modelconfig.ByChat
}

// standsIn reports whether the configuration is another one than the chat names.
func standsIn(s *scope, config *v1beta1.ChatModelConfig) bool {
	ref := s.facts.Chat.Spec.ModelConfigRef
	return ref != nil && config != nil && config.Name != ref.Name
}

// readAdvisor finds out whether the ChatModelConfig that is to give advice can.
func (r *modelReader) readAdvisor(ctx context.Context, s *scope) error {
	spec := &s.facts.Chat.Spec
	name := modelconfig.AdvisorOf(spec)
	if name == "" {
		return nil
	}
	config, err := r.namedConfig(ctx, s, name)
	if err != nil {
		return err
	}
	s.facts.NoAdvice = modelconfig.NoAdvice(spec, config)
	return nil
}

// readNamedModel resolves a ChatModelConfig that a message names.
func (r *modelReader) readNamedModel(ctx context.Context, s *scope, name string) error {
	config, err := r.namedConfig(ctx, s, name)
	if err != nil {
		return err
	}
	if s.facts.Named == nil {
		s.facts.Named = map[string]*plan.Model{}
	}
	switch {
	case config == nil:
		s.facts.Named[name] = nil
	case config.Spec.Disabled:
		s.facts.Named[name] = &plan.Model{Disabled: true}
	default:
		s.facts.Named[name] = plan.ModelOf(s.configs, config, s.facts.Chat)
	}
	return nil
}

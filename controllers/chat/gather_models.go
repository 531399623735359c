// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/plan"
	"parley.dev/parley/internal/chatclass"
	"parley.dev/parley/internal/modelconfig"
	"parley.dev/parley/internal/modellimits"
)

// modelReader reads which ChatModelConfigs answer a chat.
type modelReader struct {
	cache client.Reader
	fresh *freshReader
	// calls knows sooner than the cache that a provider asked to wait.
	calls *modellimits.Gate
}

// namedConfig is the ChatModelConfig of that name; nil if there is none. One manifest may hold it and what names it, so
// that the cache may not show it yet, or show it disabled. Where answers is true, a turn can fail for want of it.
func (r *modelReader) namedConfig(ctx context.Context, s *scope, name string, answers bool) (*v1alpha1.ChatModelConfig,
	error) {
	config := modelconfig.Find(s.configs, name)
	if isUsable(config) || s.knowsConfigs() && (s.configsLive || !answers) {
		return config, nil
	}
	if err := r.readFreshConfigs(ctx, s, answers); err != nil {
		return nil, err
	}
	config = modelconfig.Find(s.configs, name)
	if !isUsable(config) {
		s.judge(s.configsAsOf)
	}
	return config, nil
}

func isUsable(config *v1alpha1.ChatModelConfig) bool { return config != nil && !config.Spec.Disabled }

// knowsConfigs reports whether the configurations are as new as what the decision rests on.
func (s *scope) knowsConfigs() bool { return s.configsAsOf != "" && !older(s.configsAsOf, s.basis) }

// readFreshConfigs reads configurations that are new enough to say that one is missing. Where answers is true, it is
// that of a turn, which can fail for want of it.
func (r *modelReader) readFreshConfigs(ctx context.Context, s *scope, answers bool) error {
	var configs v1alpha1.ChatModelConfigList
	asOf, live, err := r.fresh.absent(ctx, s, &v1alpha1.ChatModelConfig{}, &configs, answers)
	if err != nil {
		return fmt.Errorf("listing ChatModelConfigs: %w", err)
	}
	s.configs, s.configsAsOf, s.configsLive = configs.Items, asOf, live
	r.addRetryAfter(s.configs)
	return nil
}

// addRetryAfter adds the waits that the cache does not show yet.
func (r *modelReader) addRetryAfter(configs []v1alpha1.ChatModelConfig) {
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
	var configs v1alpha1.ChatModelConfigList
	if err := r.cache.List(ctx, &configs, client.InNamespace(s.facts.Chat.Namespace)); err != nil {
		return fmt.Errorf("listing ChatModelConfigs: %w", err)
	}
	s.configs = configs.Items
	r.addRetryAfter(s.configs)
	config, missing := modelconfig.Resolve(s.configs, &s.facts.Chat.Spec, s.modelNamedBy())
	if missing != nil || standsIn(s, config) && modelconfig.Find(s.configs, s.facts.Chat.Spec.ModelConfigRef.Name) == nil {
		// One manifest may hold both: the cache may show the chat before its configuration.
		if err := r.readFreshConfigs(ctx, s, missing != nil); err != nil {
			return err
		}
		config, missing = modelconfig.Resolve(s.configs, &s.facts.Chat.Spec, s.modelNamedBy())
		if missing != nil || standsIn(s, config) {
			s.judge(s.configsAsOf)
		}
	}
	if missing != nil {
		s.facts.Blocked = missing
		return nil
	}
	s.chooseModel(config)
	return nil
}

// chooseModel lets the ChatModelConfig answer the chat, if it may.
func (s *scope) chooseModel(config *v1alpha1.ChatModelConfig) {
	f := &s.facts
	if standsIn(s, config) {
		why := modelconfig.Unavailable(s.configs, f.Chat.Spec.ModelConfigRef.Name, s.modelNamedBy())
		if why.Reason == v1alpha1.ErrorModelConfigNotFound &&
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
func standsIn(s *scope, config *v1alpha1.ChatModelConfig) bool {
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
	config, err := r.namedConfig(ctx, s, name, false)
	if err != nil {
		return err
	}
	s.facts.NoAdvice = modelconfig.NoAdvice(spec, config)
	return nil
}

// readNamedModel resolves a ChatModelConfig that a message names.
func (r *modelReader) readNamedModel(ctx context.Context, s *scope, name string) error {
	config, err := r.namedConfig(ctx, s, name, true)
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

// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
	"sync"
	"time"

	"charm.land/fantasy"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/debug"
	"parley.dev/parley/internal/generation/provider"
	"parley.dev/parley/internal/generation/provider/fault"
)

// models keeps the models that were set up, so that calls share connections. A model is named by what it was set up from,
// the key included.
type models struct {
	http *http.Client
	mu   sync.Mutex
	made map[string]madeModel
}

type madeModel struct {
	from  [sha256.Size]byte
	model fantasy.LanguageModel
}

func newModels(client *http.Client) *models {
	return &models{http: client, made: map[string]madeModel{}}
}

func (m *models) get(ctx context.Context, config *v1alpha1.ChatModelConfig, key string) (fantasy.LanguageModel, error) {
	from := sha256.Sum256([]byte(string(config.UID) + "/" + config.ResourceVersion + "/" + key))
	m.mu.Lock()
	defer m.mu.Unlock()
	if made, ok := m.made[config.Name]; ok && made.from == from {
		return made.model, nil
	}
	model, err := provider.New(ctx, &config.Spec, key, m.http)
	if err != nil {
		return nil, err
	}
	model = debug.Model(model, recordedAs(config, key))
	m.made[config.Name] = madeModel{from: from, model: model}
	return model, nil
}

// target is a model that is ready to be called.
type target struct {
	config *v1alpha1.ChatModelConfig
	key    string
	model  fantasy.LanguageModel
}

func (t *target) subject() fault.Subject {
	return fault.Subject{Config: t.config.Name, Spec: &t.config.Spec, Key: t.key}
}

// identity names the model in messages.
func (t *target) identity() *v1alpha1.ModelIdentity {
	spec := &t.config.Spec
	return &v1alpha1.ModelIdentity{Config: t.config.Name, Provider: string(spec.Provider), Name: spec.Model}
}

// target finds the model that the attempt is to call.
func (r *Runner) target(ctx context.Context, name string) (*target, *v1alpha1.GenerationError) {
	config, err := r.config(ctx, name)
	if err != nil {
		return nil, &v1alpha1.GenerationError{
			Reason:  v1alpha1.ErrorModelConfigNotFound,
			Message: fmt.Sprintf("ChatModelConfig %s does not exist any more", name),
			Advice:  "Create it again, or name another one in the chat, then send a message to go on",
		}
	}
	if config.Spec.Disabled {
		return nil, &v1alpha1.GenerationError{
			Reason: v1alpha1.ErrorModelConfigDisabled, Message: fmt.Sprintf("ChatModelConfig %s is disabled", name),
			Advice: "Name another one in the chat, or take spec.disabled out of it, then send a message to go on",
		}
	}
	t := &target{config: config}
	if t.key, err = r.key(&t.config.Spec); err != nil {
		return nil, keyError(t.config, err)
	}
	// The model outlives this attempt.
	if t.model, err = r.models.get(context.WithoutCancel(ctx), t.config, t.key); err != nil {
		return nil, &v1alpha1.GenerationError{
			Reason: v1alpha1.ErrorModelConfigInvalid, Provider: string(t.config.Spec.Provider),
			Message: fmt.Sprintf("ChatModelConfig %s cannot be used: provider, model, region and baseURL do not make a client together", name),
			Advice:  "Correct them, then send a message to go on",
		}
	}
	return t, nil
}

// config finds a configuration. The watch can lag behind the chat's, so that one that is missing is looked up where the
// truth is, until there is an answer. An error means that it does not exist, or that ctx is done.
func (r *Runner) config(ctx context.Context, name string) (*v1alpha1.ChatModelConfig, error) {
	if object, ok, err := r.configs.GetStore().GetByKey(r.Namespace + "/" + name); err == nil && ok {
		return object.(*v1alpha1.ChatModelConfig), nil
	}
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		config, err := r.Client.ModelConfigs(r.Namespace).Get(ctx, name)
		if err == nil || apierrors.IsNotFound(err) {
			return config, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(wait):
		}
	}
}

func (r *Runner) key(spec *v1alpha1.ChatModelConfigSpec) (string, error) {
	if spec.APIKey == nil {
		return "", nil
	}
	raw, err := r.Keys(spec.APIKey.SecretKeyRef.Name, spec.APIKey.SecretKeyRef.Key)
	if err != nil {
		return "", err
	}
	key := strings.TrimSpace(string(raw))
	if key == "" {
		return "", fs.ErrNotExist
	}
	return key, nil
}

func keyError(config *v1alpha1.ChatModelConfig, err error) *v1alpha1.GenerationError {
	ref := config.Spec.APIKey.SecretKeyRef
	e := &v1alpha1.GenerationError{
		Reason: v1alpha1.ErrorAPIKeyMissing, Provider: string(config.Spec.Provider),
		Message: fmt.Sprintf("Secret %s has no key %q, which ChatModelConfig %s names in apiKey.secretKeyRef, or it is empty", ref.Name, ref.Key, config.Name),
		Advice:  "Create it, then send a message to go on",
	}
	if !errors.Is(err, fs.ErrNotExist) {
		e.Message = fmt.Sprintf("Key %q of Secret %s, which ChatModelConfig %s names, cannot be read in the generation pod", ref.Key, ref.Name, config.Name)
		e.Advice = "See the pod's volumes, then send a message to try again"
	}
	return e
}

// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package models_test

import (
	"net/http"
	"testing"
	"time"

	"charm.land/fantasy"
	"k8s.io/client-go/tools/cache"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/models"
	"parley.dev/parley/internal/generation/provider/fault"
	"parley.dev/parley/internal/generation/provider/identity"
	"parley.dev/parley/internal/netguard/httpguard"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/cloudtest"
)

func TestATargetIsCalledByThePodsIdentity(t *testing.T) {
	auth := &v1alpha1.ModelAuth{Type: v1alpha1.AuthWorkloadIdentity}
	for name, spec := range map[string]v1alpha1.ChatModelConfigSpec{
		"azure": {Provider: v1alpha1.ProviderAzure, Model: "gpt-4o", Auth: auth, BaseURL: "https://my.openai.azure.com"},
		"vertex": {Provider: v1alpha1.ProviderGoogle, Model: "gemini-2.5-flash", Auth: auth,
			VertexAI: &v1alpha1.VertexAI{Project: "project-1", Location: "europe-west4"}},
	} {
		t.Run(name, func(t *testing.T) {
			cloud := cloudtest.New(t, time.Now)
			cloud.OnAzure(t)
			config := chattest.In("ns", chattest.Config(name))
			config.Spec = spec
			configs := cache.NewStore(cache.MetaNamespaceKeyFunc)
			all := models.New(models.Options{
				Namespace: "ns", Configs: configs, Now: time.Now,
				HTTP:     func(httpguard.Route) *http.Client { return cloud.Client() },
				Identity: identity.New(cloud.Client(), time.Now),
			})
			for generation := range int64(2) {
				config.Generation = generation
				if err := configs.Add(config); err != nil {
					t.Fatal(err)
				}
				if err := callTarget(t, all, name); err != nil {
					t.Fatal(err)
				}
			}
			check.Equal(t, "exchanges of one identity", 1, len(cloud.Exchanges()))
		})
	}
}

func TestATargetWithoutAnIdentityTellsWhatIsMissing(t *testing.T) {
	cloud := cloudtest.New(t, time.Now)
	config := chattest.In("ns", chattest.Config("main"))
	config.Spec = v1alpha1.ChatModelConfigSpec{Provider: v1alpha1.ProviderAzure, Model: "gpt-4o",
		Auth: &v1alpha1.ModelAuth{Type: v1alpha1.AuthWorkloadIdentity}, BaseURL: "https://my.openai.azure.com"}
	configs := cache.NewStore(cache.MetaNamespaceKeyFunc)
	if err := configs.Add(config); err != nil {
		t.Fatal(err)
	}
	all := models.New(models.Options{Namespace: "ns", Configs: configs, Now: time.Now,
		HTTP:     func(httpguard.Route) *http.Client { return cloud.Client() },
		Identity: identity.New(cloud.Client(), time.Now)})
	err := callTarget(t, all, "main")
	e := fault.Classify(err, fault.Subject{Config: "main", Spec: &config.Spec})
	check.Equal(t, "the result", v1alpha1.ErrorAuthenticationFailed, e.Reason)
	check.Contains(t, e.Message, "$AZURE_CLIENT_ID")
}

// callTarget calls the model of the configuration to the end.
func callTarget(t *testing.T, all *models.Models, name string) error {
	t.Helper()
	target, failed := all.Target(t.Context(), name)
	if failed != nil {
		t.Fatal(failed.Text())
	}
	stream, err := target.Model.Stream(t.Context(), fantasy.Call{Prompt: fantasy.Prompt{fantasy.NewUserMessage("?")}})
	if err != nil {
		return err
	}
	for part := range stream {
		if part.Type == fantasy.StreamPartTypeError {
			return part.Error
		}
	}
	return nil
}

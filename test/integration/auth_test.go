// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
)

// identified is a configuration that logs in by workload identity.
func identified(namespace string, change func(*v1beta1.ChatModelConfigSpec)) *v1beta1.ChatModelConfig {
	c := &v1beta1.ChatModelConfig{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "m-", Namespace: namespace},
		Spec: v1beta1.ChatModelConfigSpec{Model: "m", Provider: v1beta1.ProviderAzure,
			Auth: &v1beta1.ModelAuth{Type: v1beta1.AuthWorkloadIdentity}},
	}
	change(&c.Spec)
	return c
}

func TestALoginWithoutAKeyIsTaken(t *testing.T) {
	ns := bareNamespace(t)
	for name, change := range map[string]func(*v1beta1.ChatModelConfigSpec){
		"azure": func(s *v1beta1.ChatModelConfigSpec) {
			s.BaseURL = "https://my-resource.services.ai.azure.com/openai/v1"
		},
		"azure for governments": func(s *v1beta1.ChatModelConfigSpec) {
			s.BaseURL = "https://my-resource.openai.azure.us/openai/v1"
		},
		"google": func(s *v1beta1.ChatModelConfigSpec) {
			s.Provider, s.VertexAI = v1beta1.ProviderGoogle, &v1beta1.VertexAI{Project: "my-project-1", Location: "us-east4"}
		},
		"bedrock": func(s *v1beta1.ChatModelConfigSpec) { s.Provider = v1beta1.ProviderBedrock },
	} {
		if err := cluster.Client.Create(t.Context(), identified(ns, change)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestALoginThatCannotBeMeantIsRefused(t *testing.T) {
	ns := bareNamespace(t)
	at := func(baseURL string) func(*v1beta1.ChatModelConfigSpec) {
		return func(s *v1beta1.ChatModelConfigSpec) { s.BaseURL = baseURL }
	}
	vertex := func(project, location string) func(*v1beta1.ChatModelConfigSpec) {
		return func(s *v1beta1.ChatModelConfigSpec) {
			s.Provider, s.VertexAI = v1beta1.ProviderGoogle, &v1beta1.VertexAI{Project: project, Location: location}
		}
	}
	const foreign = "with auth, baseURL must be an https URL of Azure itself"
	for name, c := range map[string]struct {
		change func(*v1beta1.ChatModelConfigSpec)
		want   string
	}{
		"a key and a login": {func(s *v1beta1.ChatModelConfigSpec) {
			s.BaseURL = "https://my.openai.azure.com"
			s.APIKey = &v1beta1.APIKeySource{SecretKeyRef: v1beta1.SecretKeyReference{Name: "a", Key: "b"}}
		}, "in place of apiKey"},
		"a provider without logins": {func(s *v1beta1.ChatModelConfigSpec) { s.Provider = v1beta1.ProviderAnthropic },
			"auth can only be set for the providers azure, google and bedrock"},
		"an unknown type": {func(s *v1beta1.ChatModelConfigSpec) {
			s.Provider, s.Auth.Type = v1beta1.ProviderBedrock, "Password"
		}, "spec.auth.type"},
		"the Gemini API": {func(s *v1beta1.ChatModelConfigSpec) { s.Provider = v1beta1.ProviderGoogle },
			"vertexAI and auth go together"},
		"Vertex AI of another provider": {func(s *v1beta1.ChatModelConfigSpec) {
			s.Provider, s.VertexAI = v1beta1.ProviderBedrock, &v1beta1.VertexAI{Project: "p", Location: "global"}
		}, "vertexAI and auth go together"},
		"Vertex AI with a baseURL": {func(s *v1beta1.ChatModelConfigSpec) {
			vertex("my-project", "global")(s)
			s.BaseURL = "https://models.example.com"
		}, "baseURL cannot be set with vertexAI"},
		"a location that is another host": {vertex("my-project", "evil.example/x"), "location is one of Vertex AI"},
		"a project that is a path":        {vertex("../p", "global"), "project is the id or the number"},
		"no TLS":                          {at("http://my.openai.azure.com"), foreign},
		"another host":                    {at("https://models.example.com"), foreign},
		"a host behind a user":            {at("https://my.openai.azure.com@models.example.com"), foreign},
		"a host that ends otherwise":      {at("https://my.openai.azure.com.example.com/x"), foreign},
		"a host within a path":            {at("https://models.example.com/my.openai.azure.com"), foreign},
	} {
		t.Run(name, func(t *testing.T) {
			err := cluster.Client.Create(t.Context(), identified(ns, c.change))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error does not say %q: %.600v", c.want, err)
			}
		})
	}
}

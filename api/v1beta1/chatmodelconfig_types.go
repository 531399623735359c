// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ModelProvider is a provider of models, or the protocol that a server speaks. Its values are in lower case, unlike
// those of other enums, because they are names that people know from elsewhere, as the providers and their libraries
// spell them and as metrics label them. Values of providerOptions are the providers' own words for the same reason.
// +kubebuilder:validation:Enum=openai;anthropic;google;openai-compatible;openrouter;azure;bedrock;vercel
type ModelProvider string

const (
	// ProviderOpenAI is OpenAI's API: chat completions or responses, see transport.
	ProviderOpenAI ModelProvider = "openai"
	// ProviderAnthropic is Anthropic's messages API.
	ProviderAnthropic ModelProvider = "anthropic"
	// ProviderGoogle is Google's Gemini API.
	ProviderGoogle ModelProvider = "google"
	// ProviderOpenAICompatible is any server that speaks OpenAI's chat completions: Ollama, vLLM, llama.cpp and others.
	ProviderOpenAICompatible ModelProvider = "openai-compatible"
	// ProviderOpenRouter is OpenRouter's API.
	ProviderOpenRouter ModelProvider = "openrouter"
	// ProviderAzure is OpenAI on Azure.
	ProviderAzure ModelProvider = "azure"
	// ProviderBedrock is Anthropic on AWS Bedrock.
	ProviderBedrock ModelProvider = "bedrock"
	// ProviderVercel is Vercel's AI gateway.
	ProviderVercel ModelProvider = "vercel"
)

// ModelTransport selects among the protocols of a provider.
// +kubebuilder:validation:Enum=ChatCompletions;Responses
type ModelTransport string

const (
	// TransportChatCompletions is OpenAI's chat completions API.
	TransportChatCompletions ModelTransport = "ChatCompletions"
	// TransportResponses is OpenAI's responses API.
	TransportResponses ModelTransport = "Responses"
)

// DefaultMaxOutputTokens is sent when maxOutputTokens is not set and the context has room: 32000, since some providers
// cut at a few thousand otherwise.
const DefaultMaxOutputTokens = 32000

// ChatModelConfigSpec says which model answers, and how to call it.
// +kubebuilder:validation:XValidation:rule="!(self.provider in ['openai-compatible', 'azure']) || has(self.baseURL)",message="baseURL must be set for the providers openai-compatible and azure"
// +kubebuilder:validation:XValidation:rule="!(self.provider in ['openrouter', 'bedrock']) || !has(self.baseURL)",message="baseURL cannot be set for the providers openrouter and bedrock"
// +kubebuilder:validation:XValidation:rule="has(self.apiKey) || has(self.auth) || self.provider in ['openai-compatible', 'bedrock']",message="apiKey must be set for this provider: name the Secret and the key that holds it in apiKey.secretKeyRef; azure, and google with vertexAI, take auth in its place"
// +kubebuilder:validation:XValidation:rule="!has(self.auth) || (!has(self.apiKey) && self.provider in ['azure', 'google', 'bedrock'])",message="auth can only be set for the providers azure, google and bedrock, and in place of apiKey"
// +kubebuilder:validation:XValidation:rule="has(self.vertexAI) == (self.provider == 'google' && has(self.auth))",message="vertexAI and auth go together for the provider google, and vertexAI can be set for no other: the Gemini API takes an apiKey, and Vertex AI the workload identity"
// +kubebuilder:validation:XValidation:rule="!has(self.vertexAI) || !has(self.baseURL)",message="baseURL cannot be set with vertexAI, whose location says where the model is called"
// +kubebuilder:validation:XValidation:rule="!has(self.auth) || self.provider != 'azure' || !has(self.baseURL) || self.baseURL.matches('^https://[A-Za-z0-9-]+[.](openai|cognitiveservices|services[.]ai)[.]azure[.](com|us)(:443)?(/.*)?$')",message="with auth, baseURL must be an https URL of Azure itself, such as https://my-resource.openai.azure.com: the token of the identity is sent to no other host"
// +kubebuilder:validation:XValidation:rule="!has(self.transport) || self.provider in ['openai', 'azure']",message="transport can only be set for the providers openai and azure"
// +kubebuilder:validation:XValidation:rule="!has(self.region) || self.provider == 'bedrock'",message="region can only be set for the provider bedrock"
// +kubebuilder:validation:XValidation:rule="!has(self.apiVersion) || self.provider == 'azure'",message="apiVersion can only be set for the provider azure"
// +kubebuilder:validation:XValidation:rule="!has(self.providerOptions) || [has(self.providerOptions.anthropic) ? 'anthropic' : 'none', has(self.providerOptions.azure) ? 'azure' : 'none', has(self.providerOptions.azureResponses) ? 'azureResponses' : 'none', has(self.providerOptions.bedrock) ? 'bedrock' : 'none', has(self.providerOptions.google) ? 'google' : 'none', has(self.providerOptions.openai) ? 'openai' : 'none', has(self.providerOptions.openaiCompatible) ? 'openaiCompatible' : 'none', has(self.providerOptions.openaiResponses) ? 'openaiResponses' : 'none', has(self.providerOptions.openrouter) ? 'openrouter' : 'none', has(self.providerOptions.vercel) ? 'vercel' : 'none'].all(m, m in ['none', (has(self.transport) && self.transport == 'Responses' ? self.provider + 'Responses' : self.provider == 'openai-compatible' ? 'openaiCompatible' : self.provider)])",messageExpression="'providerOptions of this provider and transport belong into providerOptions.' + (has(self.transport) && self.transport == 'Responses' ? self.provider + 'Responses' : self.provider == 'openai-compatible' ? 'openaiCompatible' : self.provider) + ', and into no other member'"
// +kubebuilder:validation:XValidation:rule="!(self.provider in ['google', 'bedrock', 'azure']) || (self.model.matches('^[A-Za-z0-9][-A-Za-z0-9._:/@+]*$') && !self.model.contains('..') && !self.model.contains('//'))",message="model becomes part of a URL with this provider: it may hold letters, digits and - . _ : / @ + only, and neither .. nor //"
type ChatModelConfigSpec struct {
	// default makes this the ChatModelConfig of every chat in the namespace that names none. If several are default, the
	// first by name counts.
	// +optional
	Default bool `json:"default,omitempty"`

	// disabled takes the configuration out of use without deleting it: it is no chat's default, fallback, summariser or
	// advisor, and a chat or message that names it has reason ModelConfigDisabled. A call under way is finished. Default
	// false.
	// +optional
	Disabled bool `json:"disabled,omitempty"`

	// provider of the model, or the protocol that the server speaks.
	// +required
	Provider ModelProvider `json:"provider"`

	// model to call, as the provider names it: printable ASCII without spaces.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^[!-~]+$')",message="model is the provider's name of a model, in ASCII without spaces, such as claude-opus-4-5"
	// +required
	Model string `json:"model"`

	// baseURL of the API, if not the provider's own: such as http://ollama.models:11434/v1.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() in ['http', 'https'] && url(self).getHost() != ''",message="baseURL must be a URL such as https://models.example.com/v1"
	// +optional
	BaseURL string `json:"baseURL,omitempty"`

	// transport is the API of the provider to use. Default: ChatCompletions.
	// +optional
	Transport ModelTransport `json:"transport,omitempty"`

	// region of AWS such as eu-central-1, for the provider bedrock. Default: that of the generation pod's environment.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]{2,8}(-[a-z]+)+-[0-9]{1,2}$')",message="region is one of AWS, such as eu-central-1"
	// +optional
	Region string `json:"region,omitempty"`

	// apiVersion of the API such as 2025-01-01-preview, for the provider azure.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9][-.A-Za-z0-9]*$')",message="apiVersion has letters, digits, - and . only, such as 2025-01-01-preview"
	// +optional
	APIVersion string `json:"apiVersion,omitempty"`

	// apiKey is the source of the provider's API key. It is mounted into generation pods; nothing reads it through the
	// API.
	// +optional
	APIKey *APIKeySource `json:"apiKey,omitempty"`

	// auth is how calls log in without an API key, for the providers azure, google and bedrock. Default: with the key of
	// apiKey; for bedrock without one, by workload identity.
	// +optional
	Auth *ModelAuth `json:"auth,omitempty"`

	// vertexAI is where Vertex AI serves the model, for the provider google with auth. Default: the Gemini API.
	// +optional
	VertexAI *VertexAI `json:"vertexAI,omitempty"`

	// headers to send with every call. Not for keys: they are readable by all who may read this object.
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=name
	// +optional
	Headers []Header `json:"headers,omitempty"`

	// proxy is the HTTP proxy that the model is called through. Default: what the manager's flags say.
	// +optional
	Proxy *ModelProxy `json:"proxy,omitempty"`

	// caBundleFrom is the source of the certificates of authorities that are trusted for calls of this model, in addition
	// to those of the image and of the manager's --ca-configmap. Default: there are no others.
	// +optional
	CABundleFrom *CABundleSource `json:"caBundleFrom,omitempty"`

	// contextLimit is the number of tokens that the model's context holds. It is what compaction goes by. Default: what
	// the provider said when it refused a context of the chat as too long,
	// or else what Parley knows of the model, see status.contextLimit.
	// +kubebuilder:validation:Minimum=1000
	// +kubebuilder:validation:Maximum=100000000
	// +optional
	ContextLimit *int64 `json:"contextLimit,omitempty"`

	// compaction specifies when a summary replaces a context, and which model writes it.
	// +optional
	Compaction *CompactionPolicy `json:"compaction,omitempty"`

	// titles makes a model write the titles of the chats that this one answers: one more call per chat, during the first
	// reply. Default: titles are the first words of the first message.
	// +optional
	Titles *CaptionSettings `json:"titles,omitempty"`

	// turnSummaries makes a model say in 2 to 5 words what became of each turn that this one answers, in
	// Chat.status.turn.summary: one more call, and three more writes, after the last reply. Default: there are none.
	// +optional
	TurnSummaries *CaptionSettings `json:"turnSummaries,omitempty"`

	// retry says how a failed attempt is tried again.
	// +optional
	Retry *RetryPolicy `json:"retry,omitempty"`

	// limits bounds the calls to the model, over all generation pods. Default: no limits.
	// +optional
	Limits *ModelLimits `json:"limits,omitempty"`

	// idleTimeoutSeconds is how long the provider may send nothing before the call is given up and tried again. Default
	// 600; at most 3300, since an attempt that is an hour old counts as lost.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3300
	// +optional
	IdleTimeoutSeconds *int32 `json:"idleTimeoutSeconds,omitempty"`

	// fallbacks are the ChatModelConfigs to ask, in order, when this one's provider cannot answer: it is overloaded,
	// limits the rate, fails or cannot be reached, or refuses the key, the model or the account. What those name in turn
	// does not count. Each new step begins with this one again.
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=name
	// +optional
	Fallbacks []ModelConfigReference `json:"fallbacks,omitempty"`

	// maxOutputTokens of one call. Default 32000, and at most what the prompt leaves of the context, but no less than a
	// quarter of it, if its limit is known.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000000
	// +optional
	MaxOutputTokens *int64 `json:"maxOutputTokens,omitempty"`

	// temperature of the sampling. Default: the provider's.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2
	// +optional
	Temperature *float64 `json:"temperature,omitempty"`

	// topP of the sampling. Default: the provider's.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1
	// +optional
	TopP *float64 `json:"topP,omitempty"`

	// topK of the sampling, where the provider takes one. Default: the provider's.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	// +optional
	TopK *int64 `json:"topK,omitempty"`

	// presencePenalty of the sampling, where the provider takes one. Default: the provider's.
	// +kubebuilder:validation:Minimum=-2
	// +kubebuilder:validation:Maximum=2
	// +optional
	PresencePenalty *float64 `json:"presencePenalty,omitempty"`

	// frequencyPenalty of the sampling, where the provider takes one. Default: the provider's.
	// +kubebuilder:validation:Minimum=-2
	// +kubebuilder:validation:Maximum=2
	// +optional
	FrequencyPenalty *float64 `json:"frequencyPenalty,omitempty"`

	// reasoningEffort says how much the model thinks before it answers. Default: the provider's.
	// +optional
	ReasoningEffort *ReasoningEffortSettings `json:"reasoningEffort,omitempty"`

	// structuredOutput is how an answer is asked for that matches a JSON Schema. Native: by the field that the protocol
	// has for it. Tool: by a tool that the model must call. An answer is validated either way. Default: Native where the
	// provider is known to have it for the model, and for servers that speak OpenAI's protocol; else Tool.
	// +optional
	StructuredOutput StructuredOutput `json:"structuredOutput,omitempty"`

	// affinity brings the requests of one chat to the same replica of the provider, whose cache then has the prompt.
	// +optional
	Affinity *RequestAffinity `json:"affinity,omitempty"`

	// providerOptions are settings that only this provider knows, in the member of that provider. Not for keys: they are
	// readable by all who may read this object.
	// +optional
	ProviderOptions *ProviderOptions `json:"providerOptions,omitempty"`

	// pricing is what the model costs. Without it no cost is known.
	// +optional
	Pricing *Pricing `json:"pricing,omitempty"`

	// debug records every call of this configuration in ChatDebugSteps, whatever the chat specifies.
	// +optional
	Debug *DebugSettings `json:"debug,omitempty"`
}

// ModelLimits bounds the calls to a model for replies and for the summaries of compactions. Calls for titles, summaries
// of turns and advice are not counted, but are not made before status.retryAfter either.
type ModelLimits struct {
	// concurrentCalls is how many calls may be under way at once. Default: no limit.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	// +optional
	ConcurrentCalls *int32 `json:"concurrentCalls,omitempty"`

	// requestsPerMinute is how many calls may begin in any 60 seconds. Default: no limit.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	RequestsPerMinute *int32 `json:"requestsPerMinute,omitempty"`

	// tokensPerMinute is how many tokens, of input and output, the calls of any 60 seconds may use. A call counts with the
	// size of its context until it ends. One that is larger than the limit is made when no other counts. Default: no
	// limit.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000000000
	// +optional
	TokensPerMinute *int64 `json:"tokensPerMinute,omitempty"`
}

// APIKeySource says where an API key is.
type APIKeySource struct {
	// secretKeyRef names the Secret and the key in it.
	// +required
	SecretKeyRef SecretKeyReference `json:"secretKeyRef"`
}

// Header is one HTTP header.
type Header struct {
	// name of the header.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches(r'^[-!#$%&\\x27*+.^_|~0-9A-Za-z]+$')",message="the name of a header has letters, digits and -!#$%&'*+.^_|~ only, such as X-Team"
	// +required
	Name string `json:"name"`

	// value of the header, without control characters.
	// +kubebuilder:validation:MaxLength=4096
	// +kubebuilder:validation:XValidation:rule="self.matches(r'^[^\\x00-\\x08\\x0A-\\x1F\\x7F]*$')",message="the value of a header is one line without control characters, such as platform"
	// +required
	Value string `json:"value"`
}

// ChatModelConfigStatus says whether the configuration can be used.
type ChatModelConfigStatus struct {
	// observedGeneration is the generation of the spec that this status describes; -1 until it has been seen.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// contextLimit is the number of tokens that the model's context holds; absent if it is not known.
	// +kubebuilder:validation:Minimum=0
	// +optional
	ContextLimit int64 `json:"contextLimit,omitempty"`

	// contextLimitSource is where that is known from: Configured or KnownModel.
	// +optional
	ContextLimitSource ContextLimitSource `json:"contextLimitSource,omitempty"`

	// retryAfter is the time before which the provider asked not to be called (Retry-After); absent if it never did. No
	// chat calls it before, and then the first calls alone.
	// +optional
	RetryAfter *metav1.Time `json:"retryAfter,omitempty"`

	// retryAfterGeneration is the generation of the spec that retryAfter is about: a change of the spec ends the wait.
	// +optional
	RetryAfterGeneration int64 `json:"retryAfterGeneration,omitempty"`

	// conditions of the configuration: Ready, Reconciling, Stalled, ContextLimitUnknown, ReferencesUnresolved.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ChatModelConfig says which model answers, and how to call it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=cmc,categories=llm
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Provider",type=string,JSONPath=`.spec.provider`
// +kubebuilder:printcolumn:name="Model",type=string,JSONPath=`.spec.model`
// +kubebuilder:printcolumn:name="Disabled",type=boolean,JSONPath=`.spec.disabled`,priority=1
// +kubebuilder:printcolumn:name="Context",type=integer,JSONPath=`.status.contextLimit`,priority=1
// +kubebuilder:printcolumn:name="Default",type=boolean,JSONPath=`.spec.default`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="!has(self.spec.fallbacks) || self.spec.fallbacks.all(f, f.name != self.metadata.name)",message="a ChatModelConfig cannot be its own fallback"
type ChatModelConfig struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec says which model, and how.
	// +required
	Spec ChatModelConfigSpec `json:"spec"`

	// status says whether it can be used; only the operator writes it.
	// +kubebuilder:default:={"observedGeneration":-1}
	// +structType=atomic
	// +optional
	Status ChatModelConfigStatus `json:"status,omitempty,omitzero"`
}

// ChatModelConfigList is a list of ChatModelConfigs.
// +kubebuilder:object:root=true
type ChatModelConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []ChatModelConfig `json:"items"`
}

// RetryAfter is the time before which the provider asked not to be called; zero if there is none. What an earlier
// generation of the spec was told does not count: it may have had another provider or key.
func (c *ChatModelConfig) RetryAfter() time.Time {
	if c.Status.RetryAfter == nil || c.Status.RetryAfterGeneration != c.Generation {
		return time.Time{}
	}
	return c.Status.RetryAfter.Time
}

// MaxOutputTokensOrDefault is maxOutputTokens, or DefaultMaxOutputTokens.
func (s *ChatModelConfigSpec) MaxOutputTokensOrDefault() int64 {
	if s.MaxOutputTokens == nil {
		return DefaultMaxOutputTokens
	}
	return *s.MaxOutputTokens
}

// SilenceTimeoutOrDefault is idleTimeoutSeconds, or DefaultSilenceTimeout.
func (s *ChatModelConfigSpec) SilenceTimeoutOrDefault() time.Duration {
	if s.IdleTimeoutSeconds == nil {
		return DefaultSilenceTimeout
	}
	return time.Duration(*s.IdleTimeoutSeconds) * time.Second
}

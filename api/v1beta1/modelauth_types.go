// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// ModelAuth says how calls of a model log in without an API key.
type ModelAuth struct {
	// type of the login. WorkloadIdentity: the service account parley-generation of the namespace logs in at the cloud of
	// the provider, as the cloud's own webhook or metadata server lets it. Nothing is stored in the cluster.
	// +required
	Type ModelAuthType `json:"type"`
}

// ModelAuthType is how calls of a model log in.
// +kubebuilder:validation:Enum=WorkloadIdentity
type ModelAuthType string

// AuthWorkloadIdentity logs in as the service account of the generation pods.
const AuthWorkloadIdentity ModelAuthType = "WorkloadIdentity"

// VertexAI is where Google's Vertex AI serves a model.
type VertexAI struct {
	// project is the id or the number of the Google Cloud project.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9.-]+:)?[a-z0-9][a-z0-9-]*$')",message="project is the id or the number of a Google Cloud project, such as my-project"
	// +required
	Project string `json:"project"`

	// location such as europe-west4, or global, eu or us.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]+(-[a-z]+[0-9]+)?$')",message="location is one of Vertex AI, such as europe-west4 or global"
	// +required
	Location string `json:"location"`
}

// Host is the host that serves the location.
func (v *VertexAI) Host() string {
	switch v.Location {
	case "global":
		return "aiplatform.googleapis.com"
	case "eu", "us":
		return "aiplatform." + v.Location + ".rep.googleapis.com"
	}
	return v.Location + "-aiplatform.googleapis.com"
}

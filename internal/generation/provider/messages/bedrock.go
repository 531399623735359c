// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package messages

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"charm.land/fantasy"
	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/config"

	"parley.dev/parley/api/v1alpha1"
)

const (
	// bedrockVersion is what Bedrock calls the version of the protocol.
	bedrockVersion = "bedrock-2023-05-31"
	// keyRegion is the region of a key if nobody names one.
	keyRegion = "us-east-1"
)

// bedrock is what differs where AWS runs the model.
type bedrock struct {
	region, model, key string
	// environment is AWS's configuration of the pod, with its chain of credentials. It is read once, when it is needed.
	// The chain asks AWS over a client of its own: the client of models reaches no metadata service.
	environment func() (aws.Config, error)
}

func newBedrock(spec *v1alpha1.ChatModelConfigSpec, key string) *bedrock {
	return &bedrock{
		region: spec.Region, model: spec.Model, key: cmp.Or(key, os.Getenv("AWS_BEARER_TOKEN_BEDROCK")),
		environment: sync.OnceValues(func() (aws.Config, error) {
			return config.LoadDefaultConfig(context.Background())
		}),
	}
}

// bedrockFields are the fields that stand for the model and the headers in a request.
func bedrockFields(headers []v1alpha1.Header) map[string]any {
	fields := map[string]any{"anthropic_version": bedrockVersion}
	var betas []string
	for _, h := range headers {
		if http.CanonicalHeaderKey(h.Name) == betaHeader {
			betas = append(betas, strings.FieldsFunc(h.Value, func(c rune) bool { return c == ',' || c == ' ' })...)
		}
	}
	if len(betas) > 0 {
		fields["anthropic_beta"] = betas
	}
	return fields
}

// url is where the model is called.
func (b *bedrock) url() (string, error) {
	region, err := b.regionOf()
	return fmt.Sprintf("https://bedrock-runtime.%s.amazonaws.com/model/%s/invoke-with-response-stream", region,
		url.QueryEscape(b.model)), err
}

func (b *bedrock) regionOf() (string, error) {
	if b.region != "" {
		return b.region, nil
	}
	environment, err := b.environment()
	switch {
	case environment.Region != "":
		return environment.Region, nil
	case b.key != "":
		return keyRegion, nil
	case err != nil:
		return "", noCredentials(err)
	}
	return "", errors.New("calling Bedrock: no region is set; set spec.region of the ChatModelConfig")
}

// sign gives a request the key, or else the signature of AWS.
func (b *bedrock) sign(ctx context.Context, request *http.Request, body []byte) error {
	request.Header.Del(betaHeader)
	if b.key != "" {
		request.Header.Set("Authorization", "Bearer "+b.key)
		return nil
	}
	region, err := b.regionOf()
	if err != nil {
		return err
	}
	environment, err := b.environment()
	if err != nil {
		return noCredentials(err)
	}
	credentials, err := environment.Credentials.Retrieve(ctx)
	if err != nil {
		return noCredentials(err)
	}
	sum := sha256.Sum256(body)
	return v4.NewSigner().SignHTTP(ctx, credentials, request, hex.EncodeToString(sum[:]), "bedrock", region, time.Now())
}

// noCredentials is the error of a call that nobody has signed.
func noCredentials(err error) error {
	return &fantasy.ProviderError{
		Title: "no AWS credentials", Message: "getting the AWS credentials of the pod: " + err.Error(), Cause: err,
		AuthError: true,
	}
}

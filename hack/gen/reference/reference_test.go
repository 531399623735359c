// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

func TestMeaningOmitsNameOfConstant(t *testing.T) {
	for doc, want := range map[string]string{
		"ReasonAnswered surfaces in Ready (True) when it ended.": "Ready (True) when it ended.",
		"ConditionTruncated of a Chat is True when it was cut.":  "True when it was cut.",
		"EventExpired surfaces when it was deleted.":             "When it was deleted.",
		"MCPTimedOut means that it took longer.":                 "It took longer.",
		"WaitForPod ends when the pod is ready.":                 "Ends when the pod is ready.",
		"":                                                       "",
	} {
		if got := meaning(doc); got != want {
			t.Errorf("%q: got %q", doc, got)
		}
	}
}

func TestLimitsAreInWords(t *testing.T) {
	schema := apiextensionsv1.JSONSchemaProps{
		Enum: []apiextensionsv1.JSON{{Raw: []byte(`"A"`)}, {Raw: []byte(`"B"`)}}, Minimum: new(1.0),
		Maximum: new(2592000.0), MaxItems: new(int64(3)),
		Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{MinLength: new(int64(1))}},
	}
	want := []string{"`A`, `B`", "1 to 2592000", "at most 3 entries", "each at least 1 characters"}
	if got := limitsOf(schema); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestClaimsAreParagraphsOfComments(t *testing.T) {
	parsed, err := parser.ParseFile(token.NewFileSet(), "a_test.go", `package a

// TestIt tests it.
//
// Security (a hostile model): cannot
// read it. Also TestB, TestC of x/y.
//
// Security (a hostile model): can write it.
func TestIt() {}
`, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	want := []claim{
		{"a hostile model", "cannot read it", "`TestIt` of `a`; `TestB`, `TestC` of `x/y`"},
		{"a hostile model", "can write it", "`TestIt` of `a`"},
	}
	if got := claimsOf(parsed.Decls[0].(*ast.FuncDecl), "a"); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	existing := map[string]bool{"a.TestIt": true, "x/y.TestB": true}
	if err := checkClaims(want, existing); err == nil {
		t.Error("a claim with an unknown test passed")
	}
	existing["x/y.TestC"] = true
	if err := checkClaims(want, existing); err != nil {
		t.Error(err)
	}
}

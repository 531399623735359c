// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// MaxCurrencies is in how many currencies one chat's cost is counted.
const MaxCurrencies = 8

// Currency is a currency by its three letters (ISO 4217), such as USD.
// +kubebuilder:validation:MinLength=3
// +kubebuilder:validation:MaxLength=3
// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Z]{3}$')",message="a currency is three upper-case letters (ISO 4217), such as USD"
type Currency string

// Amount is an amount of money as people write it: a decimal number with at most 6 digits after the point, such as
// "0.30". It is a string, so that nothing on the way rounds it: quote it in YAML.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=16
// +kubebuilder:validation:XValidation:rule="self.matches('^(0|[1-9][0-9]{0,8})([.][0-9]{1,6})?$')",message="an amount is a decimal number in quotes, with at most 9 digits before the point and 6 after it, such as \"3.75\""
type Amount string

// Pricing is what a model costs, as price lists say it: per million tokens.
type Pricing struct {
	// currency of all prices.
	// +required
	Currency Currency `json:"currency"`

	// inputPerMillion is the price of a million tokens that the model reads.
	// +required
	InputPerMillion Amount `json:"inputPerMillion"`

	// outputPerMillion is the price of a million tokens that the model produces, reasoning included.
	// +required
	OutputPerMillion Amount `json:"outputPerMillion"`

	// cacheReadPerMillion is the price of a million tokens that come from the provider's prompt cache. Default:
	// inputPerMillion.
	// +optional
	CacheReadPerMillion Amount `json:"cacheReadPerMillion,omitempty"`

	// cacheWritePerMillion is the price of a million tokens that go into the provider's prompt cache. Default:
	// inputPerMillion.
	// +optional
	CacheWritePerMillion Amount `json:"cacheWritePerMillion,omitempty"`
}

// Cost is money that was spent.
type Cost struct {
	// currency of the cost.
	// +required
	Currency Currency `json:"currency"`

	// microUnits is the cost in millionths of the currency: 1000000 of USD are one dollar.
	// +kubebuilder:validation:Minimum=0
	// +required
	MicroUnits int64 `json:"microUnits"`
}

// Budget is money that may be spent.
type Budget struct {
	// currency of the budget. The ChatModelConfig that answers must have prices in it.
	// +required
	Currency Currency `json:"currency"`

	// amount of money in the currency, such as "2.50".
	// +required
	Amount Amount `json:"amount"`
}

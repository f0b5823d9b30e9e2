"""Keys of a config.json that change no definition, with the reason for each."""

from __future__ import annotations

from collections.abc import Mapping

_REASONS: Mapping[str, str] = {
    "it names the model, its files or the code that reads them": """
        _name_or_path architectures auto_map model_type transformers_version torchscript
        use_mamba_kernels _commit_hash name_or_path id2label label2id problem_type
        unsloth_fixed unsloth_version mamba_pytorch_impl""",
    "it is about training": """
        initializer_range attention_dropout hidden_dropout hidden_dropout_prob embd_pdrop
        resid_pdrop residual_dropout dropout router_aux_loss_coef router_jitter_noise output_router_logits
        aux_loss_alpha seq_aux rescale_prenorm_residual ep_size pretraining_tp
        use_aux_loss moe_router_topk_scaling_init embedding_initializer_range
        initial_context_length output_dropout ffn_dropout classifier_dropout
        router_z_loss_coef attention_probs_dropout_prob norm_reduce_in_fp32
        moe_aux_loss_coeff swiglu_limit_training mtp_loss_scaling_factor
        router_ignore_padding_tokens time_step_min time_step_max time_step_floor
        mamba_init""",
    "it is about calls of transformers": """
        use_cache output_attentions output_hidden_states return_dict is_decoder
        is_encoder_decoder chunk_size_feed_forward add_cross_attention
        num_logits_to_keep cross_attention_hidden_size cache_implementation
        _attn_implementation _attn_implementation_autoset attn_implementation
        moe_shared_expert_overlap for_llm_compressor use_return_dict
        _experts_implementation gradient_checkpointing""",
    "it is a token or a tokenizer's": """
        bos_token_id eos_token_id eod_token_id pad_token_id sep_token_id decoder_start_token_id
        unk_token_id tokenizer_class image_token_id image_token_index boi_token_index
        eoi_token_index boi_token_id eoi_token_id video_token_id audio_token_id
        vision_start_token_id vision_end_token_id audio_start_token_id
        audio_end_token_id user_token_id img_context_token_id eoi_token eos_token
        begin_suppress_tokens suppress_tokens forced_bos_token_id
        forced_eos_token_id prefix bos_token mm_tokens_per_image""",
    "it is settings of sampling, which are inputs": """
        temperature top_k top_p typical_p min_length max_length num_beams
        num_beam_groups diversity_penalty do_sample early_stopping length_penalty
        repetition_penalty encoder_no_repeat_ngram_size no_repeat_ngram_size
        bad_words_ids num_return_sequences output_scores return_dict_in_generate
        remove_invalid_values exponential_decay_length_penalty""",
    "the sizes of layers do not depend on it": """
        max_position_embeddings max_sequence_length original_max_position_embeddings
        tie_word_embeddings model_max_length seq_length tie_encoder_decoder
        pruned_heads finetuning_task task_specific_params tf_legacy_loss
        use_bfloat16""",
    "it is in the cache of cosines and sines, which is an input": """
        rope_theta rope_local_base_freq rope_scale_factor""",
    "it is in the input sm_scale": "query_pre_attn_scalar attention_multiplier",
    "it follows from other keys": """
        qk_head_dim kv_head_dim _sliding_window_pattern use_grouped_topk""",
    "it is how SGLang chunks a prefill, with the same result": "chunk_size",
    "transformers reads it, and neither it nor SGLang computes by it": """
        expand mamba_dt_rank""",
}

IRRELEVANT: Mapping[str, str] = {
    key: reason for reason, keys in _REASONS.items() for key in keys.split()
}
"""Key → why it changes nothing that the map says."""

OPTIONS = (
    *("attention_bias", "attention_out_bias", "mlp_bias", "qkv_bias", "lm_head_bias"),
    *("mamba_proj_bias", "use_bias", "use_qk_norm", "rope_interleaved"),
    "use_sliding_window",
)
"""Keys that add something where they are true: false changes nothing in any model."""

OF_SOME = frozenset(
    [
        *("attn_logit_softcapping", "final_logit_softcapping", "moe_latent_size"),
        *("embedding_multiplier", "residual_multiplier", "logits_scaling"),
        "attention_out_bias",
    ]
)
"""Keys that other architectures' code does not read, whatever a file says: they are none
of a model whose defaults lack them, and so are listed as not placed."""

UNPLACED: Mapping[str, str] = {
    "vision_config": "the vision tower",
    "audio_config": "the audio tower",
    "num_nextn_predict_layers": "the layers that draft several tokens",
    "mtp_layers_block_type": "the layers that draft several tokens",
    "num_mtp_modules": "the layers that draft several tokens",
    "use_mtp": "the layers that draft several tokens",
    "mtp_num_hidden_layers": "the layers that draft several tokens",
    "mtp_use_dedicated_embeddings": "the embeddings of layers that draft",
    "enable_moe_fp32_combine": "experts' outputs summed in float32",
    "clip_qkv": "queries, keys and values cut off at a limit",
    "residual_in_fp32": "a residual in float32",
    "use_bidirectional_attention": "attention that sees later tokens",
}
"""Modules that no definition is named for, by the key of a config that has them."""

#include "http/octet.h"

enum {
    O = 0,
    T = HF_OCTET_TOKEN,
    P = HF_OCTET_TARGET,
    B = T | P,
    L = T | P | HF_OCTET_HOST,
    X = T | P | HF_OCTET_HOST | HF_OCTET_HEX
};

const unsigned char hf_http_octets[256] = {
    O, O, O, O, O, O, O, O, O, O, O, O, O, O, O, O, /* control bytes */
    O, O, O, O, O, O, O, O, O, O, O, O, O, O, O, O, /* control bytes */
    O, B, O, T, B, T, B, B, P, P, B, B, P, L, L, P, /*   ! " # $ % & ' ( ) * + , - . / */
    X, X, X, X, X, X, X, X, X, X, P, P, O, P, O, P, /* 0 1 2 3 4 5 6 7 8 9 : ; < = > ? */
    P, X, X, X, X, X, X, L, L, L, L, L, L, L, L, L, /* @ A B C D E F G H I J K L M N O */
    L, L, L, L, L, L, L, L, L, L, L, O, O, O, T, L, /* P Q R S T U V W X Y Z [ \ ] ^ _ */
    T, X, X, X, X, X, X, L, L, L, L, L, L, L, L, L, /* ` a b c d e f g h i j k l m n o */
    L, L, L, L, L, L, L, L, L, L, L, O, T, O, L, O, /* p q r s t u v w x y z { | } ~ and DEL */
};
